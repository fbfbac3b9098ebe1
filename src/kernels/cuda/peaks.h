// Scratch of peaks(): a Peak for each part of each row.
#pragma once

#include "kernels/args.h"

namespace slip {

inline constexpr int kPeakParts = 32;     // blocks per row: one could not read a row fast enough
inline constexpr int kMostPeakRows = 64;  // rows of a step that logits are usually wanted of

constexpr size_t peaks_scratch_bytes(int64_t rows = kMostPeakRows) {
  return size_t(rows) * kPeakParts * sizeof(Peak);
}

}  // namespace slip
