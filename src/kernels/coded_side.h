// Coded keys and values (KvPages) as the backends of the host address them.
#pragma once

#include "kernels/args.h"
#include "kernels/kv_index.h"
#include "quant/turboquant.h"

namespace slip {

// The keys, or the values, of one layer and one step.
struct CodedSide {
  KvSide side;
  KvCodec codec;
  View codes;   // u8 [pages, kv_heads, bytes], in the layout of the backend
  View scales;  // bf16 [pages, kv_heads, page_len]
  View tail;    // bf16 [slots, kv_heads, 2 * page_len, head_dim]
  View rows;    // [rows, kv_heads, head_dim], as KvPages says; may be empty

  int64_t kv_heads() const { return scales.shape[1]; }
  int64_t page_len() const { return scales.shape[2]; }
  int64_t head_dim() const { return tail.shape[3]; }

  // Number of a position's vector among [pages, kv_heads, page_len].
  int64_t vector_at(const Span& span, int64_t position, int64_t head) const {
    const int64_t page = span.pages[size_t(position / page_len())];
    return vector_in_page(scales.shape, page, position, head);
  }

  // The row of this step at a position, and a place of the tail.
  float* row(const Span& span, int64_t position, int64_t head) const {
    const int64_t row = span.first_row + position - span.start;
    return rows.f32() + (row * kv_heads() + head) * head_dim();
  }
  uint16_t* tail_at(const Span& span, int64_t place, int64_t head) const {
    const int64_t vector = (span.state_slot * kv_heads() + head) * 2 * page_len() + place;
    return tail.as<uint16_t>(DType::bf16) + vector * head_dim();
  }
};

template <class Args>
CodedSide coded_key_side(const Args& args) {
  return {KvSide::keys,       args.kv.recipe.keys, args.kv.keys,
          args.kv.key_scales, args.kv.key_tail,    args.k};
}
template <class Args>
CodedSide coded_value_side(const Args& args) {
  return {KvSide::values,       args.kv.recipe.values, args.kv.values,
          args.kv.value_scales, args.kv.value_tail,    args.v};
}

}  // namespace slip
