// Logits that the backend writes and the host chooses from. Most choices need only a row's peak, or
// its best few candidates. The backend finds them: then twelve bytes, or a kilobyte, come from a
// GPU instead of a megabyte. A backend on the host finds the peak alone, which saves fetching the
// row from the caches of other cores; candidates are left to whoever wants them.
#pragma once

#include <optional>

#include "engine/host_rows.h"
#include "kernels/ops.h"

namespace slip {

class Logits {
 public:
  Logits() = default;
  // `rounds`: passes that write the same rows, one after the other, and leave a peak each.
  Logits(Ops& ops, int64_t rows, int64_t width, int64_t rounds = 1);

  // What that takes of the backend's memory: the rows and their peaks. Candidates are only there
  // where that is not the host's, and lie on the host.
  static uint64_t bytes(int64_t rows, int64_t width, int64_t rounds = 1) {
    return uint64_t(rows) * (uint64_t(width) * sizeof(float) + uint64_t(rounds) * sizeof(Peak));
  }

  // For a step that produces the first `rows` rows, in the last of so many rounds.
  View view(int64_t rows) const { return values_.view().first(rows); }
  View peaks(int64_t rows, int64_t round = 0) const;
  void changed(int64_t rows, int64_t rounds = 1);

  int64_t rows() const { return values_.view().shape[0]; }
  std::span<float> row(int64_t index) { return values_.row(index); }

  // Of a row; with several rounds, those of the first come first.
  Peak peak(int64_t index);
  // Of all rows of the step, when they are first asked for. None where the row itself is at hand.
  std::optional<Candidates> candidates(int64_t index);

 private:
  Ops* ops_ = nullptr;
  HostRows values_;
  HostRows peaks_;          // the bits of a Peak as floats
  HostRows candidates_;     // the bits of Candidates as floats; may be empty
  int64_t unsearched_ = 0;  // rows of the step, until their candidates are found
};

// One row of them.
struct LogitRow {
  Logits& logits;
  int64_t index;
  // Where columns stand for some tokens alone, those, rising; and a row of the whole vocabulary on
  // the host that has nothing for all others.
  std::span<const int32_t> tokens{};
  View all_tokens{};  // [vocabulary]

  // Of the whole vocabulary.
  std::span<float> values() const;
  Peak peak() const;
  std::optional<Candidates> candidates() const;
};

}  // namespace slip
