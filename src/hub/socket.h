// TCP connections that can be given up: every wait has an end, and a stop flag ends all of them.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slip {

struct NetworkLimits {
  double connect_seconds = 15;
  double silence_seconds = 30;  // without a byte from the other side
};

// Raised by another thread, or by whoever sets the outer flag (a signal handler); connections then
// fail within a fraction of a second.
class StopFlag {
 public:
  StopFlag() = default;
  explicit StopFlag(const std::atomic<bool>& outer) : outer_(&outer) {}

  void raise() { raised_.store(true, std::memory_order_relaxed); }
  bool raised() const {
    return raised_.load(std::memory_order_relaxed) ||
           (outer_ && outer_->load(std::memory_order_relaxed));
  }

 private:
  std::atomic<bool> raised_{false};
  const std::atomic<bool>* outer_ = nullptr;
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // At least one byte; 0: the other side has ended.
  virtual Result<size_t> read(std::span<char> into) = 0;
  // All of them.
  virtual Status write(std::string_view bytes) = 0;
};

class Socket : public ByteStream {
 public:
  // Tries every address the name has.
  static Result<std::unique_ptr<Socket>> connect(const std::string& host, const std::string& port,
                                                 const NetworkLimits& limits, const StopFlag& stop);
  ~Socket() override;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  Result<size_t> read(std::span<char> into) override;
  Status write(std::string_view bytes) override;

  // For TLS, which reads and writes by itself: the descriptor does not block.
  int descriptor() const { return fd_; }
  enum class Direction { reading, writing };
  Status wait(Direction direction) const { return wait(direction, limits_.silence_seconds); }

 private:
  Socket(int fd, const NetworkLimits& limits, const StopFlag& stop)
      : fd_(fd), limits_(limits), stop_(stop) {}
  Status wait(Direction direction, double seconds) const;

  int fd_;
  NetworkLimits limits_;
  const StopFlag& stop_;
};

}  // namespace slip
