// Scratch of candidates(): the best of each part of each row.
#pragma once

#include <cstdint>

#include "kernels/args.h"

namespace slip {

// A value and its id, ordered as candidates are: larger is better. No candidate is 0.
using CandidateKey = unsigned long long;

inline constexpr int kKeyThreads = 1024;
inline constexpr int kKeysPerThread = 8;
inline constexpr int kBlockKeys = kKeyThreads * kKeysPerThread;  // that a block chooses from

constexpr int64_t candidate_parts(int64_t width) { return (width + kBlockKeys - 1) / kBlockKeys; }

// What the best of all parts of a row may be, for one block to choose from.
inline constexpr int64_t kWidestCandidates = int64_t(kBlockKeys) * kBlockKeys / kCandidates;

// 64 rows of 262,144 values: rows of a step that logits are usually wanted of, of the largest
// vocabulary that is known. Wider rows are fewer at once.
constexpr size_t candidates_scratch_bytes() {
  return size_t(64 * candidate_parts(262144) * kCandidates) * sizeof(CandidateKey);
}

}  // namespace slip
