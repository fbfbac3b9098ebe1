// What came of the drafts of an answer.
#pragma once

#include <cstdint>
#include <vector>

namespace slip {

// The most tokens that a step may draft for a sequence.
inline constexpr int64_t kMaxDrafts = 8;

struct DraftCounts {
  int64_t steps = 0;                  // passes of the model
  int64_t made = 0;                   // passes of the drafter
  int64_t drafted = 0, accepted = 0;  // tokens that were verified, and were right
  // Per place in the draft: place 0 is the first. Drafts after a wrong one are not judged.
  std::vector<int64_t> judged_at, accepted_at;

  DraftCounts() = default;
  explicit DraftCounts(int64_t places) : judged_at(size_t(places)), accepted_at(size_t(places)) {}

  void add_step(int64_t verified, int64_t judged, int64_t right) {
    ++steps;
    drafted += verified;
    accepted += right;
    for (size_t i = 0; i < size_t(judged); ++i) ++judged_at[i];
    for (size_t i = 0; i < size_t(right); ++i) ++accepted_at[i];
  }
};

}  // namespace slip
