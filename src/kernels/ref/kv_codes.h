// Coded keys and values (KvPages). The reference's layout: the codes of all vectors of
// [pages, kv_heads, page_len] are one string of bits, the lowest bit of a code first.
#pragma once

#include <span>

#include "kernels/args.h"
#include "quant/turboquant.h"

namespace slip {

// The keys, or the values, of one layer and one step.
struct CodedKv {
  KvCodec codec;
  View codes;   // u8
  View scales;  // bf16 [pages, kv_heads, page_len]
  View tail;    // bf16 [slots, kv_heads, 2 * page_len, head_dim]
  View rows;    // [rows, kv_heads, head_dim], Hadamard-rotated and rounded to bf16
};

template <class Args>
CodedKv coded_keys(const Args& args) {
  return {args.kv.recipe.keys, args.kv.keys, args.kv.key_scales, args.kv.key_tail, args.k};
}

template <class Args>
CodedKv coded_values(const Args& args) {
  return {args.kv.recipe.values, args.kv.values, args.kv.value_scales, args.kv.value_tail, args.v};
}

// One vector in and out, by its number among [pages, kv_heads, page_len].
void write_codes(const CodedKv& kv, int64_t vector, std::span<const float> rotated);
void read_codes(const CodedKv& kv, int64_t vector, std::span<double> values);

// Codes every page that the span completes and leaves its newest rows in the tail.
void store_rows(const CodedKv& kv, const Span& span);

// One head at `position`, as the row at position `reader` of the span sees it.
struct CodedRead {
  int64_t reader, position, kv_head;
};
void read_position(const CodedKv& kv, const Span& span, const CodedRead& read,
                   std::span<double> values);

}  // namespace slip
