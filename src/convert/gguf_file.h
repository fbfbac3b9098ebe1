// Files in GGUF, version 3: metadata, a list of tensors, their bytes. Written front to back under
// another name, which becomes the real one when everything is on the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/new_file.h"
#include "base/result.h"

namespace slip {

// The types that we write, with their numbers in the file.
enum class GgufType : uint32_t { f32 = 0, f16 = 1, q4_0 = 2, bf16 = 30 };
const char* name_of(GgufType type);

// Q4_0: 32 values as a half-precision scale d and 16 bytes, w = (code - 8) * d; value j is the low
// nibble of byte j, value j + 16 the high one.
inline constexpr int64_t kGgufBlock = 32;
inline constexpr size_t kGgufBlockBytes = 18;

// Bytes of so many values, which are whole blocks.
uint64_t gguf_bytes(GgufType type, int64_t values);

class GgufMetadata {
 public:
  void add(std::string_view key, std::string_view text);
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }
  void add(std::string_view key, uint32_t number);
  void add(std::string_view key, float number);
  void add(std::string_view key, bool flag);
  void add(std::string_view key, std::span<const int32_t> numbers);
  void add(std::string_view key, std::span<const std::string> texts);

  uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, uint32_t type);

  std::string bytes_;
  uint64_t count_ = 0;
};

struct GgufTensor {
  std::string name;
  std::vector<int64_t> shape;  // outermost first, as everywhere here; files have it the other way
  GgufType type = GgufType::f32;

  uint64_t bytes() const;
};

class GgufWriter {
 public:
  // `path` must not exist yet. Writes everything before the tensors' bytes.
  static Result<GgufWriter> create(const std::filesystem::path& path, const GgufMetadata& metadata,
                                   std::vector<GgufTensor> tensors);

  // The next bytes of the tensors, in their order.
  Status append(std::span<const std::byte> bytes);

  // Checks that all tensors are whole, and gives the file its name.
  Status finish();

  uint64_t written() const { return written_; }

 private:
  GgufWriter(NewFile file, std::vector<GgufTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}
  Status write(std::span<const std::byte> bytes);
  Status pad_to_alignment();

  NewFile file_;
  uint64_t position_ = 0;
  uint64_t written_ = 0;  // bytes of tensors, without padding
  std::vector<GgufTensor> tensors_;
  size_t current_ = 0;           // tensor
  uint64_t current_filled_ = 0;  // bytes of it
};

}  // namespace slip
