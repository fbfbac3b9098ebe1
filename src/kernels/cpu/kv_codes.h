// Coded keys and values as the CPU keeps them.
//
// Products of a coded page sum over pairs of steps and have 16 outputs side by side (pair_dot() in
// simd/int16_<isa>.h). Keys have an output per position and a step per dimension; values have an
// output per dimension and a step per position. The levels of a page in the order of use are
//   [outputs / 16][steps / 2][16 outputs][2 steps]
// which is a row of vectors of 32. Words of 16 bits hold the codes of several such vectors (8 bits:
// of 2, 4: of 4, 2: of 8), one beside the other, so that a shift and a mask bring out the codes of
// one vector. Of 3 bits the lower two are kept like this for 16 vectors, then the upper ones.
#pragma once

#include "kernels/coded_side.h"
#include "kernels/cpu/simd/loops.h"

namespace slip {

// Stops unless the CPU can keep such pages.
void check_codable(const CodedSide& kv);

// What rotate_and_store() does with one row of the span that is normalised and has its position:
// rotates it, rounds it to bf16, and keeps what later rows will read uncoded. `row` may be where
// the result goes.
void store_uncoded(const CodedSide& kv, const Span& span, int64_t position, int64_t head,
                   const Loops& loops, const float* row);

// Before the first row is stored: see kv_tail.h.
void move_beginning(const CodedSide& kv, const Span& span);

// Pages that the span completes, from that of `start` on.
int64_t completed_pages(const CodedSide& kv, const Span& span);
int64_t encode_scratch_values(int64_t head_dim);
// Codes the page that begins at `position`, after its rows are stored.
void encode_page(const CodedSide& kv, const Span& span, int64_t position, int64_t head,
                 const Loops& loops, std::span<float> scratch);

// The coded page in which `position` lies, for attention.
CodedMatrix coded_matrix(const CodedSide& kv, const Span& span, int64_t position, int64_t head);

// Keys or values as they are, a row per position. A page that is not read as codes begins at
// `position` or before it.
struct UncodedRows {
  const void* data;
  StoredKv stored;
  int64_t stride;  // values from row to row
};
UncodedRows uncoded_page(const CodedSide& kv, const Span& span, int64_t position, int64_t head);

}  // namespace slip
