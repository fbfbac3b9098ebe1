// Reading and writing plain keys and values.
#pragma once

#include <span>

#include "quant/number_formats.h"
#include "tensor/view.h"

namespace slip {

inline float read_plain(const View& view, int64_t index) {
  switch (view.dtype) {
    case DType::bf16: return bf16_to_float(view.as<uint16_t>(DType::bf16)[index]);
    case DType::fp8_e4m3: return fp8_to_float(view.as<uint8_t>(DType::fp8_e4m3)[index]);
    default: return view.f32()[index];
  }
}

inline void write_plain(const View& view, int64_t index, float value) {
  switch (view.dtype) {
    case DType::bf16: view.as<uint16_t>(DType::bf16)[index] = float_to_bf16(value); break;
    case DType::fp8_e4m3: view.as<uint8_t>(DType::fp8_e4m3)[index] = float_to_fp8(value); break;
    default: view.f32()[index] = value;
  }
}

// All values of one vector.
inline void read_plain(const View& view, int64_t vector, std::span<double> values) {
  const int64_t first = vector * int64_t(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = double(read_plain(view, first + int64_t(i)));
}

inline void write_plain(const View& view, int64_t vector, std::span<const double> values) {
  const int64_t first = vector * int64_t(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    write_plain(view, first + int64_t(i), float(values[i]));
}

}  // namespace slip
