// Logits that the backend writes and the host chooses from. Most choices need only the peak of a
// row, which the backend finds itself: twelve bytes instead of a megabyte have to come from a GPU,
// or from the caches of other processors.
#pragma once

#include "engine/host_rows.h"
#include "kernels/args.h"

namespace slip {

class Logits {
 public:
  Logits() = default;
  // `rounds`: passes that write the same rows, one after the other, and leave a peak each.
  Logits(Memory& memory, int64_t rows, int64_t width, int64_t rounds = 1);

  // What that takes of memory: the rows and their peaks.
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

 private:
  HostRows values_;
  HostRows peaks_;  // the bits of a Peak as floats
};

// One row of them.
struct LogitRow {
  Logits& logits;
  int64_t index;
  // Where columns stand for some tokens alone, those, rising; and a row of the whole vocabulary on
  // the host that has nothing for all others.
  std::span<const int32_t> tokens{};
  Logits* all_tokens = nullptr;

  // Of the whole vocabulary.
  std::span<float> values() const;
  Peak peak() const;
};

}  // namespace slip
