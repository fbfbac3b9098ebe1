// One forward pass over rows of several sequences.
#pragma once

#include <span>
#include <vector>

#include "engine/engine.h"

namespace slip {

// Rows that need logits come last and lie side by side: sequences without any are added first, then
// at most one of which only the last row needs them, then those that need them for every row.
class StepBatch {
 public:
  explicit StepBatch(Engine& engine);

  void clear();
  int64_t rows() const { return int64_t(ids_.size()); }
  int64_t outputs() const { return int64_t(outputs_.size()); }

  // The next `ids` of a sequence; there is room for them. Logits are wanted of the last `outputs`.
  void add(SequenceId sequence, std::span<const int32_t> ids, int64_t outputs, Cache::Rows kind);
  void run();

  // Of the part that was added as number `part`, after run().
  LogitRow logits(size_t part, int64_t output);
  View hidden(size_t part) const;                               // [rows, hidden]; empty without MTP
  std::span<const float> hidden_row(size_t part, int64_t row);  // on the host
  std::span<const int32_t> ids(size_t part) const;

 private:
  struct Part {
    int64_t first_row, rows, first_output;
  };

  Engine& engine_;
  StepBuffers& buffers_;
  std::vector<int32_t> ids_;
  std::vector<Span> spans_;
  std::vector<int64_t> outputs_;
  std::vector<Part> parts_;
};

}  // namespace slip
