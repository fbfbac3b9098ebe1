#include "kernels/ref/decode_row.h"

#include <array>

#include "quant/number_formats.h"

namespace slip {
namespace {

const std::array<float, 256>& fp8_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> table;
    for (int code = 0; code < 256; ++code) table[size_t(code)] = fp8_to_float(uint8_t(code));
    return table;
  }();
  return values;
}

template <class T>
const T* row_of(const Weight& weight, int64_t row, int64_t values_per_row) {
  return reinterpret_cast<const T*>(weight.values.data) + row * values_per_row;
}

}  // namespace

void decode_row(const Weight& weight, int64_t row, std::span<double> values) {
  check(!weight.packed, "the reference reads the plain layout only");
  const WeightInfo& info = weight.info;
  const int64_t in = info.in;
  check(int64_t(values.size()) == in, "decode_row: ", values.size(), " values for ", in);
  switch (info.format) {
    case WeightFormat::f32: {
      const auto* stored = row_of<float>(weight, row, in);
      for (int64_t i = 0; i < in; ++i) values[size_t(i)] = stored[i];
      return;
    }
    case WeightFormat::bf16: {
      const auto* stored = row_of<uint16_t>(weight, row, in);
      for (int64_t i = 0; i < in; ++i) values[size_t(i)] = bf16_to_float(stored[i]);
      return;
    }
    case WeightFormat::f16: {
      const auto* stored = row_of<uint16_t>(weight, row, in);
      for (int64_t i = 0; i < in; ++i) values[size_t(i)] = f16_to_float(stored[i]);
      return;
    }
    case WeightFormat::fp8_block: {
      const auto* stored = row_of<uint8_t>(weight, row, in);
      const float* scales = weight.scales.f32() + row / kFp8Block * weight.scales.shape[1];
      const auto& table = fp8_values();
      for (int64_t i = 0; i < in; ++i) values[size_t(i)] = table[stored[i]] * scales[i / kFp8Block];
      return;
    }
    case WeightFormat::int8_row: {
      const auto* stored = row_of<int8_t>(weight, row, in);
      const float scale = weight.scales.f32()[row];
      for (int64_t i = 0; i < in; ++i) values[size_t(i)] = float(stored[i]) * scale;
      return;
    }
    case WeightFormat::int4_group: {
      const auto* stored = row_of<uint8_t>(weight, row, in / 2);
      const int64_t groups = in / info.group;
      const auto* scales = weight.scales.as<uint16_t>(DType::f16) + row * groups;
      for (int64_t group = 0; group < groups; ++group) {
        const float scale = f16_to_float(scales[group]);
        for (int64_t i = group * info.group; i < (group + 1) * info.group; i += 2) {
          const int pair = stored[i / 2];
          values[size_t(i)] = float((pair & 15) - 8) * scale;
          values[size_t(i + 1)] = float((pair >> 4) - 8) * scale;
        }
      }
      return;
    }
  }
  unreachable("WeightFormat");
}

}  // namespace slip
