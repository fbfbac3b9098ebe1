// The engine for many: one thread computes steps in which the requests of all take part.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "engine/engine.h"
#include "engine/request.h"

namespace slip {

struct ServiceOptions {
  int64_t max_queue = 256;      // requests that may wait
  int64_t max_drafts = 0;       // at most, chosen per request and step; 0: no drafts
  bool always_draft = false;    // max_drafts in every step, not only those that pay
  double chunk_seconds = 0.05;  // of a prompt, while others wait for their next token
};

enum class RequestId : uint64_t {};

// Why a request was not taken.
struct Refusal {
  enum class Kind : uint8_t {
    queue_full,  // later it may be taken
    too_long,    // prompt and answer do not fit the context
    stopping,
    invalid,
  };
  Kind kind;
  std::string message;
};

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

class Service {
 public:
  // Starts the thread. The engine is the service's alone from here on.
  Service(Engine& engine, const Tokenizer& tokenizer, const ServiceOptions& options);
  // Cancels what is left and waits for the thread.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // All methods may be called from any thread.
  std::variant<RequestId, Refusal> submit(Request request,
                                          std::shared_ptr<RequestListener> listener);
  // Ends a request within one step; its listener hears on_finish(). Unknown ids are ignored.
  void cancel(RequestId id);

  // Takes no more requests; returns true when all are done, false after `seconds`.
  bool drain(double seconds);

  ServiceStats stats() const;
  int64_t context() const;
  // Seconds since the thread last showed that it is alive; grows only if a step hangs.
  double silence() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace slip
