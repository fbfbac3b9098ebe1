// The sequences of the cache: those that run, and those that are remembered because another text
// may begin in the same way. The latter give way whenever the former need their memory.
#pragma once

#include <optional>
#include <span>

#include "cache/prefix_index.h"
#include "engine/draft_passes.h"

namespace slip {

class SequencePool {
 public:
  // At most `most_running` may run at once. `drafts` may be null; what it keeps for a sequence is
  // copied and cleared with it.
  SequencePool(Cache& cache, int64_t most_running, DraftPasses* drafts);
  ~SequencePool();
  SequencePool(const SequencePool&) = delete;
  SequencePool& operator=(const SequencePool&) = delete;

  // A sequence to compute `text` in, which has room for all of it and holds the longest beginning
  // that is remembered, short of the whole. Nothing when it has to wait for others to end.
  struct Started {
    SequenceId sequence;
    int64_t length;  // tokens it holds
  };
  enum class Reuse : uint8_t { no, yes };
  std::optional<Started> start(const PrefixIndex::Text& text, Reuse reuse);

  // Forgets what the sequence holds; its room has to be made again.
  void start_over(SequenceId sequence);

  // Makes room for `positions`; false when all the memory is with sequences that run.
  bool reserve(SequenceId sequence, int64_t positions);

  // Remembers where the sequence stands now, if there is memory to spare.
  void remember(const PrefixIndex::Text& text, SequenceId sequence);

  // The sequence has ended; with a text it is remembered as it is.
  void end(SequenceId sequence);
  void end(SequenceId sequence, const PrefixIndex::Text& text);

  int64_t running() const { return int64_t(running_.size()); }

  struct Pages {
    int64_t all, free, remembered;  // those remembered count as free
  };
  Pages pages() const;

 private:
  bool forget_oldest();
  std::optional<SequenceId> open();
  // A sequence that stands where `from` does; fails without memory.
  Result<SequenceId> copy(SequenceId from);
  SequenceId go_on_from(SequenceId found);

  Cache& cache_;
  int64_t most_running_;
  DraftPasses* drafts_;
  PrefixIndex index_;
  std::vector<SequenceId> running_;
};

}  // namespace slip
