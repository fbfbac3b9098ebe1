// A backend that keeps the time of every operation: where a step's time goes. On the host alone:
// elsewhere an operation returns before it is done.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "kernels/forwarding_ops.h"

namespace slip {

class TimedOps : public ForwardingOps {
 public:
  explicit TimedOps(std::unique_ptr<Ops> ops) : ForwardingOps(*ops), ops_(std::move(ops)) {}

  // Of all calls of this operation since the last reset().
  double seconds(const std::string& op) const {
    const auto found = seconds_.find(op);
    return found == seconds_.end() ? 0 : found->second;
  }
  void reset() { seconds_.clear(); }

  // Its parts, each with a time of its own.
  // NOLINTNEXTLINE(bugprone-parent-virtual-call)
  void gated_delta_net(const GatedDeltaNetArgs& args) override { Ops::gated_delta_net(args); }

 private:
  void around(const char* op, FunctionRef<void()> call) override {
    const Stopwatch clock;
    call();
    const double seconds = clock.seconds();
    seconds_[op] += seconds;
  }

  std::unique_ptr<Ops> ops_;
  std::map<std::string, double> seconds_;
};

}  // namespace slip
