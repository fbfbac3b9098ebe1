#include "engine/chunk_budget.h"

#include <algorithm>

namespace slip {
namespace {

constexpr double kKeep = 0.9;
constexpr int64_t kFewestRows = 16;  // fewer waste the pass over the weights
constexpr int64_t kFirstRows = 32;   // before anything is known
// A step may take so many times longer with a prompt in it than without, however quick it is.
constexpr double kMostSlowdown = 4;

}  // namespace

int64_t ChunkBudget::rows() const {
  if (row_seconds_.empty()) return kFirstRows;
  double seconds = seconds_;
  if (!decode_seconds_.empty())
    seconds = std::min(seconds, (kMostSlowdown - 1) * decode_seconds_.mean());
  return std::max(kFewestRows, int64_t(seconds / std::max(row_seconds_.mean(), 1e-9)));
}

void ChunkBudget::add_prompt_step(int64_t rows, double seconds, Beside beside) {
  double own = seconds;
  if (beside == Beside::others) own = std::max(0.2 * seconds, seconds - decode_seconds_.mean());
  row_seconds_.add(own / double(rows), kKeep);
}

void ChunkBudget::add_decode_step(double seconds) { decode_seconds_.add(seconds, kKeep); }

}  // namespace slip
