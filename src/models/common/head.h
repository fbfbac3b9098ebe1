// From hidden states to logits.
#pragma once

#include <span>
#include <vector>

#include "kernels/ops.h"
#include "tensor/buffer.h"

namespace slip {

// Rows whose logits are wanted; they must be neighbours.
struct OutputRows {
  int64_t first = 0, count = 0;
};
OutputRows output_rows(std::span<const int64_t> outputs);

// The parts of `spans` that lie in these rows, numbered from the first of them.
void narrow(std::span<const Span> spans, const OutputRows& rows, std::vector<Span>& parts);

// Logits of these rows of a normed hidden state [rows, hidden], and their peaks where those are
// wanted. A soft cap of 0 is none.
struct Scores {
  View logits, peaks;
  float soft_cap = 0;
  View tokens{}, ids{};  // of PeaksArgs
};
void score(Ops& ops, const View& hidden, const OutputRows& outputs, const Weight& head,
           const Scores& scores);
// The peaks alone, of logits that are there.
void find_peaks(Ops& ops, const Scores& scores);

// Tokens where a backend finds them: i32 [tokens], empty if there are none.
Tensor token_table(Memory& memory, std::span<const int32_t> tokens);

}  // namespace slip
