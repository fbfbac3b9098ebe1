// The delta rule as threads share it: value heads, or strips of their columns, need none of the
// others.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd/loops.h"
#include "kernels/ops.h"

namespace slip {

// Rows whose queries and keys are prepared together; they stay in the first-level cache with a
// strip of the state.
inline constexpr int64_t kDeltaRows = 16;
inline constexpr int64_t kDeltaColumns = 64;  // of a strip
inline constexpr int64_t kMaxKeyDim = 512;

constexpr int64_t delta_scratch_values() {
  return kMaxKeyDim * kDeltaColumns + kDeltaRows * (2 * kMaxKeyDim + 3);
}

// What a thread does of it.
class DeltaRule {
 public:
  // Checks shapes.
  DeltaRule(const DeltaNetArgs& args, const Loops& loops);

  int64_t value_heads() const { return value_heads_; }
  int64_t strips() const { return strips_; }  // of a value head

  // Value heads [first, first + count), all of one key head, and the same strips of each.
  struct Part {
    int64_t first_head, heads;
    int64_t first_strip, strips;
  };
  // All rows of the span; `memory` has delta_scratch_values().
  void run(const Span& span, const Part& part, float* memory) const;

 private:
  // A few rows as the inner loop wants them, and room for it to work in.
  struct Scratch {
    float* work;       // [kDeltaColumns * key_dim]; first, because vectors are read from it
    float* q;          // [kDeltaRows, key_dim]
    float* k;          // [kDeltaRows, key_dim]
    float* alpha;      // [kDeltaRows]
    float* beta;       // [kDeltaRows]
    float* key_query;  // [kDeltaRows]

    Scratch(float* memory, int64_t key_dim)
        : work(memory),
          q(work + kDeltaColumns * key_dim),
          k(q + kDeltaRows * key_dim),
          alpha(k + kDeltaRows * key_dim),
          beta(alpha + kDeltaRows),
          key_query(beta + kDeltaRows) {}
  };
  // Rows [begin, begin + count) of a span.
  struct Rows {
    const Span& span;
    int64_t begin, count;

    int64_t first() const { return span.first_row + begin; }  // of the step
  };
  static Rows next_rows(const Span& span, int64_t begin) {
    return {span, begin, std::min(kDeltaRows, span.rows - begin)};
  }

  void prepare_keys(const Rows& rows, int64_t key_head, const Scratch& scratch) const;
  void prepare_gates(const Rows& rows, int64_t head, const Scratch& scratch) const;
  DeltaUpdates replay(const Span& span, int64_t head, int64_t column) const;
  // Leaves what the next step needs to replay these rows, and returns where their deltas go.
  float* record(const Rows& rows, int64_t head, int64_t strip, const Scratch& scratch) const;
  float* state(const Span& span, int64_t head, int64_t strip) const;
  // The strip that is run behind this one, or null.
  float* next_state(const Span& span, const Part& part, int64_t head, int64_t strip) const;
  void run_rows(const Rows& rows, int64_t head, int64_t strip, float* next_state,
                const Scratch& scratch) const;

  DeltaNetArgs args_;
  const Loops& loops_;
  int64_t value_heads_, key_dim_, value_dim_;
  int64_t key_size_;    // of all heads of a row
  int64_t value_size_;  // likewise
  int64_t repeat_;      // value heads per key head
  int64_t strips_;
};

}  // namespace slip
