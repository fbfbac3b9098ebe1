// What a service can be told.
#pragma once

#include <cstdint>

namespace slip {

struct ServiceOptions {
  int64_t max_queue = 256;      // requests that may wait
  int64_t max_drafts = 0;       // at most, chosen per request and step; 0: no drafts
  bool always_draft = false;    // max_drafts in every step, not only those that pay
  double chunk_seconds = 0.05;  // of a prompt, while others wait for their next token
};

}  // namespace slip
