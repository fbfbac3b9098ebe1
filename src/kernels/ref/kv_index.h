// Where a key or value lies in the pages, and reading and writing plain ones.
#pragma once

#include <span>

#include "kernels/args.h"
#include "quant/number_formats.h"

namespace slip {

// Which vector of [pages, kv_heads, page_len] a position is that lies in `page`; `shape` begins
// with these.
inline int64_t vector_in_page(const Shape& shape, int64_t page, int64_t position, int64_t kv_head) {
  const int64_t kv_heads = shape[1], page_len = shape[2];
  return (page * kv_heads + kv_head) * page_len + position % page_len;
}

// The same for a position of a sequence: coded, and plain keys or values.
inline int64_t kv_vector(const Shape& shape, const Span& span, int64_t position, int64_t kv_head) {
  return vector_in_page(shape, span.pages[size_t(position / shape[2])], position, kv_head);
}
inline int64_t plain_vector(const KvPages& kv, const Span& span, int64_t position,
                            int64_t kv_head) {
  const Shape& shape = kv.keys.shape;
  return vector_in_page(shape, kv.page_of(span, position, shape[2]), position, kv_head);
}

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
