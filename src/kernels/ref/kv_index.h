// Where a key or value lies in the pages, and reading and writing there.
#pragma once

#include <span>

#include "kernels/args.h"
#include "quant/number_formats.h"

namespace slip {

// Index of the first of head_dim values.
inline int64_t kv_index(const KvPages& kv, const Span& span, int64_t position, int64_t kv_head) {
  const Shape& shape = kv.keys.shape;  // [pages, kv_heads, page_len, head_dim]
  const int64_t kv_heads = shape[1], page_len = shape[2], head_dim = shape[3];
  const int64_t page = span.pages[size_t(position / page_len)];
  return ((page * kv_heads + kv_head) * page_len + position % page_len) * head_dim;
}

// The head_dim values of one head, starting at `index`.
inline void read_kv(const View& view, int64_t index, std::span<double> values) {
  if (view.dtype == DType::bf16) {
    const uint16_t* stored = view.as<uint16_t>(DType::bf16) + index;
    for (size_t i = 0; i < values.size(); ++i) values[i] = bf16_to_float(stored[i]);
  } else {
    const float* stored = view.f32() + index;
    for (size_t i = 0; i < values.size(); ++i) values[i] = stored[i];
  }
}

inline void write_kv(const View& view, int64_t index, float value) {
  if (view.dtype == DType::bf16) {
    view.as<uint16_t>(DType::bf16)[index] = float_to_bf16(value);
  } else {
    view.f32()[index] = value;
  }
}

}  // namespace slip
