// Reads back what gguf_file.h writes, by the format's definition and not by our writer's code.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "quant/number_formats.h"

namespace slip {

struct GgufFile {
  struct Tensor {
    std::vector<uint64_t> dims;  // innermost first
    uint32_t type = 0;
    uint64_t offset = 0;
  };
  std::string bytes;
  std::map<std::string, std::string> texts;
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<std::string>> text_lists;
  std::map<std::string, std::vector<int32_t>> number_lists;
  std::map<std::string, Tensor> tensors;
  uint64_t data = 0;

  static GgufFile read(const std::filesystem::path& path) {
    GgufFile file;
    file.bytes = read_text_file(path, uint64_t(1) << 32).value();
    EXPECT_EQ(file.bytes.substr(0, 4), "GGUF");
    file.at_ = 4;
    EXPECT_EQ(file.take<uint32_t>(), 3u);
    const auto tensor_count = file.take<uint64_t>();
    const auto pairs = file.take<uint64_t>();
    for (uint64_t i = 0; i < pairs; ++i) file.take_pair();
    for (uint64_t i = 0; i < tensor_count; ++i) {
      Tensor& tensor = file.tensors[file.take_text()];
      tensor.dims.resize(file.take<uint32_t>());
      for (uint64_t& dim : tensor.dims) dim = file.take<uint64_t>();
      tensor.type = file.take<uint32_t>();
      tensor.offset = file.take<uint64_t>();
      EXPECT_EQ(tensor.offset % 32, 0u);
    }
    file.data = (file.at_ + 31) / 32 * 32;
    return file;
  }

  // One value; `row` counts over all but the innermost dimension.
  float value(const std::string& name, uint64_t row, uint64_t column) const {
    const Tensor& tensor = tensors.at(name);
    const uint64_t index = row * tensor.dims[0] + column;
    const char* begin = bytes.data() + data + tensor.offset;
    switch (tensor.type) {
      case 0: return load<float>(begin + index * 4);
      case 1: return f16_to_float(load<uint16_t>(begin + index * 2));
      case 30: return bf16_to_float(load<uint16_t>(begin + index * 2));
      case 2: {
        const char* block = begin + index / 32 * 18;
        const uint64_t place = index % 32;
        const auto byte = uint8_t(block[2 + place % 16]);
        return f16_to_float(load<uint16_t>(block)) *
               float((place < 16 ? byte & 15 : byte >> 4) - 8);
      }
      default: ADD_FAILURE() << name << " has type " << tensor.type; return 0;
    }
  }

 private:
  template <class T>
  static T load(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
  }
  template <class T>
  T take() {
    const T value = load<T>(bytes.data() + at_);
    at_ += sizeof(T);
    return value;
  }
  std::string take_text() {
    const auto size = take<uint64_t>();
    at_ += size;
    return bytes.substr(at_ - size, size);
  }
  void take_pair() {
    const std::string key = take_text();
    const auto type = take<uint32_t>();
    switch (type) {
      case 4: numbers[key] = take<uint32_t>(); break;
      case 6: numbers[key] = take<float>(); break;
      case 7: numbers[key] = take<uint8_t>(); break;
      case 8: texts[key] = take_text(); break;
      case 9: {
        const auto element = take<uint32_t>();
        const auto count = take<uint64_t>();
        for (uint64_t i = 0; i < count; ++i) {
          if (element == 8) {
            text_lists[key].push_back(take_text());
          } else {
            EXPECT_EQ(element, 5u);
            number_lists[key].push_back(take<int32_t>());
          }
        }
        break;
      }
      default: FAIL() << key << " has type " << type;
    }
  }

  size_t at_ = 0;
};

}  // namespace slip
