// Files for the tests of checkpoint/: made in a fresh folder, gone at the end of the test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slip {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "slip-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) ADD_FAILURE() << "cannot make " << pattern;
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::filesystem::path& name, std::string_view content) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  std::filesystem::path path_;
};

// A safetensors file: the length, the header and `data_size` bytes 0, 1, 2, ...
inline std::string safetensors_file(std::string_view header, size_t data_size) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += char(uint64_t(header.size()) >> (8 * i));
  file += header;
  for (size_t i = 0; i < data_size; ++i) file += char(i);
  return file;
}

// A file of weights: one U8 tensor of four bytes per name.
inline std::string weights_file(std::initializer_list<std::string_view> names) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  size_t begin = 0;
  for (const std::string_view name : names) {
    header += cat(",\"", name, R"(":{"dtype":"U8","shape":[4],"data_offsets":[)", begin, ",",
                  begin + 4, "]}");
    begin += 4;
  }
  return safetensors_file(header + "}", begin);
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The message must hold all the parts: the file, the tensor, what was expected, what was found.
template <class T>
void expect_error(const Result<T>& result, std::initializer_list<std::string_view> parts) {
  ASSERT_FALSE(result.ok()) << "expected an error with: " << *parts.begin();
  for (const std::string_view part : parts)
    EXPECT_THAT(result.failure().message, ::testing::HasSubstr(std::string(part)));
}

}  // namespace slip
