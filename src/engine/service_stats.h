// What a service tells about itself.
#pragma once

#include <cstdint>
#include <vector>

namespace slip {

// Counters since the start, and how things stand.
struct ServiceStats {
  int64_t running = 0, waiting = 0;
  int64_t pages = 0, free_pages = 0;  // of keys and values; remembered prefixes count as free
  int64_t remembered_pages = 0;       // of those free: hold prefixes that may be reused
  int64_t sequences = 0, free_sequences = 0;
  int64_t prompt_tokens = 0;         // asked for
  int64_t cached_prompt_tokens = 0;  // of them, found remembered
  int64_t generated_tokens = 0;
  int64_t preemptions = 0;
  int64_t steps = 0;
  int64_t drafts = 0;  // steps of a request that verified drafts
  int64_t draft_tokens = 0, accepted_tokens = 0;
  std::vector<int64_t> accepted_at;  // per place in the draft
};

}  // namespace slip
