#include "server/canary.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"

namespace slip {
namespace {

constexpr double kOldAfterSeconds = 10;

}  // namespace

class Canary::Token : public RequestListener {
 public:
  void on_token(const TokenEvent& event) override {
    const std::lock_guard lock(mutex_);
    came_ = true;
    if (!std::isfinite(event.logprob)) complaint_ = "the model's logits are not numbers";
  }
  void on_finish(const RequestSummary& summary) override {
    {
      const std::lock_guard lock(mutex_);
      finished_ = true;
      if (summary.failure) complaint_ = summary.failure->message;
      // Stopped with everything else: that is no complaint.
      if (!came_ && !summary.failure && summary.finish != FinishReason::cancelled)
        complaint_ = "the model gave no token";
    }
    changed_.notify_all();
  }

  bool finished() const {
    const std::lock_guard lock(mutex_);
    return finished_;
  }
  bool wait(double seconds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [this] { return finished_; });
  }
  std::optional<std::string> complaint() const {
    const std::lock_guard lock(mutex_);
    return complaint_;
  }
  double age() const { return clock_.seconds(); }

 private:
  const Stopwatch clock_{};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool came_ = false, finished_ = false;
  std::optional<std::string> complaint_;
};

Canary::Canary(Service& service) : service_(service) {}

void Canary::ask() {
  auto token = std::make_shared<Token>();
  Request request;
  request.prompt = {0};
  request.max_tokens = request.min_tokens = 1;
  request.top_logprobs = 0;
  request.sampling.temperature = 0;
  request.reuse_prefix = false;
  request.draft = false;
  // A full queue is no complaint: others are being answered, or silence() tells that they are not.
  if (std::holds_alternative<RequestId>(service_.submit(std::move(request), token)))
    token_ = std::move(token);
}

Status Canary::check_now(double seconds) {
  ask();
  if (!token_ || !token_->wait(seconds))
    return error("the engine did not give a first token within ", seconds, " s");
  complaint_ = token_->complaint();
  if (complaint_) return error("the engine's first token failed: ", *complaint_);
  return {};
}

std::optional<std::string> Canary::complaint() {
  if (token_ && token_->finished()) complaint_ = token_->complaint();
  if (!token_ || (token_->finished() && token_->age() > kOldAfterSeconds)) ask();
  return complaint_;
}

}  // namespace slip
