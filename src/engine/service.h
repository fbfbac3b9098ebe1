// The engine for many: one thread computes steps in which the requests of all take part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "engine/engine.h"
#include "engine/request.h"
#include "engine/service_options.h"
#include "engine/service_stats.h"

namespace slip {

// Why a request was not taken.
struct Refusal {
  enum class Kind : uint8_t {
    queue_full,  // later it may be taken
    too_long,    // the prompt does not fit the context
    stopping,
    invalid,
  };
  Kind kind;
  std::string message;
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
