// Small checkpoints written tensor by tensor, for the tests of weights/.
#pragma once

#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "quant/number_formats.h"
#include "tests/checkpoint/test_files.h"

namespace slip {

class WrittenCheckpoint {
 public:
  // Any values; as many as the shape has.
  template <class T>
  WrittenCheckpoint& add(const std::string& name, StoredType type, std::vector<int64_t> shape,
                         const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    bytes_.emplace_back(bytes.begin(), bytes.end());
    tensors_.push_back({name, type, std::move(shape), bytes_.back()});
    return *this;
  }

  WrittenCheckpoint& remove(const std::string& name) {
    std::erase_if(tensors_, [&](const TensorToWrite& tensor) { return tensor.name == name; });
    return *this;
  }

  Checkpoint open() {
    check(write_safetensors(folder_.path() / kFile, tensors_, "pt").ok(), "cannot write");
    Result<Checkpoint> checkpoint = Checkpoint::open(folder_.path());
    check(checkpoint.ok(), checkpoint.ok() ? "" : checkpoint.failure().message);
    return std::move(checkpoint).value();
  }

  static constexpr const char* kFile = "model.safetensors";
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  TempFolder folder_;
  std::deque<std::vector<std::byte>> bytes_;
  std::vector<TensorToWrite> tensors_;
};

// Numbers that every 16-bit format holds exactly.
inline std::vector<float> small_numbers(int64_t count, uint32_t seed = 1) {
  std::mt19937 rng(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = float(int(rng() % 255) - 127) / 64;
  return values;
}

inline std::vector<uint16_t> to_bf16(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(float_to_bf16(value));
  return bits;
}
inline std::vector<uint16_t> to_f16(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(float_to_f16(value));
  return bits;
}

// An int4 matrix as AutoRound writes it, and the numbers it means.
struct Int4Module {
  int64_t out, in, group;
  std::vector<uint32_t> qweight, qzeros;
  std::vector<uint16_t> scales;
  std::vector<float> values;  // [out, in]

  Int4Module(int64_t rows, int64_t columns, int64_t group_size, uint32_t zeros = 0x77777777)
      : out(rows), in(columns), group(group_size) {
    std::mt19937 rng(7);
    qweight.resize(size_t(in / 8 * out));
    qzeros.assign(size_t(in / group * out / 8), zeros);
    values.resize(size_t(out * in));
    const std::vector<float> scale_values = small_numbers(in / group * out, 3);
    scales = to_f16(scale_values);
    for (int64_t r = 0; r < out; ++r) {
      for (int64_t c = 0; c < in; ++c) {
        const uint32_t code = rng() % 16;
        qweight[size_t(c / 8 * out + r)] |= code << (c % 8 * 4);
        const float scale = scale_values[size_t(c / group * out + r)];
        values[size_t(r * in + c)] = float(int(code) - 8) * scale;
      }
    }
  }

  void add_to(WrittenCheckpoint& checkpoint, const std::string& module) const {
    checkpoint.add(module + ".qweight", StoredType::i32, {in / 8, out}, qweight)
        .add(module + ".scales", StoredType::f16, {in / group, out}, scales)
        .add(module + ".qzeros", StoredType::i32, {in / group, out / 8}, qzeros);
  }
};

}  // namespace slip
