// What went wrong first, among things that several threads do.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "base/result.h"

namespace slip {

class FirstFailure {
 public:
  // Whether there is no more use in going on.
  bool any() const { return any_.load(std::memory_order_relaxed); }

  // True if `status` is no failure.
  bool keep(Status status) {
    if (status.ok()) return true;
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(status).failure();
    any_.store(true);
    return false;
  }

  // When all threads are done.
  Status take() {
    if (failure_) return *std::move(failure_);
    return {};
  }

 private:
  std::mutex mutex_;
  std::optional<Error> failure_;
  std::atomic<bool> any_{false};
};

}  // namespace slip
