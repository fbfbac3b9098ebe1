#include "models/common/head.h"

#include <algorithm>

namespace slip {

OutputRows output_rows(std::span<const int64_t> outputs) {
  if (outputs.empty()) return {};
  const int64_t first = outputs.front(), count = int64_t(outputs.size());
  for (int64_t i = 0; i < count; ++i)
    check(outputs[size_t(i)] == first + i, "logits are wanted of rows that are not neighbours");
  return {first, count};
}

void narrow(std::span<const Span> spans, const OutputRows& rows, std::vector<Span>& parts) {
  parts.clear();
  for (const Span& span : spans) {
    const int64_t begin = std::max(span.first_row, rows.first);
    const int64_t end = std::min(span.first_row + span.rows, rows.first + rows.count);
    if (begin >= end) continue;
    Span part = span;
    part.first_row = begin - rows.first;
    part.rows = end - begin;
    part.start = span.start + begin - span.first_row;
    parts.push_back(part);
  }
}

void score(Ops& ops, const View& hidden, const OutputRows& outputs, const Weight& head,
           const Scores& scores) {
  if (outputs.count == 0) return;
  ops.linear(
      {.x = hidden.slice(outputs.first, outputs.count), .weight = head, .out = scores.logits});
  if (scores.soft_cap > 0) ops.soft_cap({.x = scores.logits, .cap = scores.soft_cap});
  find_peaks(ops, scores);
}

void find_peaks(Ops& ops, const Scores& scores) {
  if (scores.peaks.empty()) return;
  ops.peaks({.x = scores.logits, .out = scores.peaks, .tokens = scores.tokens, .ids = scores.ids});
}

Tensor token_table(Memory& memory, std::span<const int32_t> tokens) {
  if (tokens.empty()) return {};
  Tensor table(memory, DType::i32, {int64_t(tokens.size())});
  memory.upload(table.view.data, tokens.data(), tokens.size_bytes());
  return table;
}

}  // namespace slip
