// Where a row lies in the record of the delta rule (DeltaRecord).
#pragma once

#include "kernels/args.h"

namespace slip {

// Row `row` of one side of a sequence's record, at one value head and its key head.
struct RecordedRow {
  float* key;    // [key_dim]; the next row is key_heads * key_dim further
  float* delta;  // [value_dim]; value_heads * value_dim
  float* decay;  // value_heads
};

inline RecordedRow recorded_row(const DeltaNetArgs& args, const Span& span, int32_t side,
                                int64_t row, int64_t head) {
  const int64_t value_heads = args.state.shape[1];
  const int64_t key_dim = args.state.shape[2], value_dim = args.state.shape[3];
  const int64_t key_head = head / (value_heads / args.key_heads);
  row += (2 * span.state_slot + side) * args.record.keys.shape[1];
  return {.key = args.record.keys.f32() + (row * args.key_heads + key_head) * key_dim,
          .delta = args.record.deltas.f32() + (row * value_heads + head) * value_dim,
          .decay = args.record.decays.f32() + row * value_heads + head};
}

}  // namespace slip
