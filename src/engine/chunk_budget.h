// How many rows of prompts a step may compute while others wait for their next token: as many as
// take the time that those others can be made to wait, learnt from earlier steps.
#pragma once

#include <cstdint>

#include "engine/draft_length.h"

namespace slip {

class ChunkBudget {
 public:
  // `seconds`: the longest that prompts may add to a step.
  explicit ChunkBudget(double seconds) : seconds_(seconds) {}

  int64_t rows() const;

  // A step with so many rows of prompts, beside the decode rows of others or alone.
  enum class Beside : uint8_t { nobody, others };
  void add_prompt_step(int64_t rows, double seconds, Beside beside);
  void add_decode_step(double seconds);

 private:
  double seconds_;
  FadingMean row_seconds_, decode_seconds_;
};

}  // namespace slip
