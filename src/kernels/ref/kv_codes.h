// Coded keys and values (KvPages). The reference's layout: the codes of all vectors of
// [pages, kv_heads, page_len] are one string of bits, the lowest bit of a code first.
#pragma once

#include <span>

#include "kernels/coded_side.h"

namespace slip {

// One vector in and out, by its number among [pages, kv_heads, page_len].
void write_codes(const CodedSide& kv, int64_t vector, std::span<const float> rotated);
void read_codes(const CodedSide& kv, int64_t vector, std::span<double> values);

// Codes every page that the span completes and leaves its newest rows in the tail.
void store_rows(const CodedSide& kv, const Span& span);

// One head at `position`, as the row at position `reader` of the span sees it.
struct CodedRead {
  int64_t reader, position, kv_head;
};
void read_position(const CodedSide& kv, const Span& span, const CodedRead& read,
                   std::span<double> values);

}  // namespace slip
