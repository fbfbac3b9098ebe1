#include "server/metrics_answerer.h"

#include <optional>

#include "base/clock.h"

namespace slip {
namespace {

class MetricsListener final : public RequestListener {
 public:
  MetricsListener(std::shared_ptr<RequestListener> listener, Metrics& metrics)
      : listener_(std::move(listener)), metrics_(metrics) {}

  void on_prompt(int64_t done, int64_t total) override { listener_->on_prompt(done, total); }
  void on_prompt_token(const TokenEvent& event) override { listener_->on_prompt_token(event); }
  void on_token(const TokenEvent& event) override {
    if (since_token_) metrics_.token_gap(since_token_->seconds());
    since_token_.emplace();
    listener_->on_token(event);
  }
  void on_finish(const RequestSummary& summary) override { listener_->on_finish(summary); }

 private:
  std::shared_ptr<RequestListener> listener_;
  Metrics& metrics_;
  std::optional<Stopwatch> since_token_;
};

}  // namespace

std::variant<RequestId, Refusal> MetricsAnswerer::submit(
    Request request, std::shared_ptr<RequestListener> listener) {
  return service_.submit(std::move(request),
                         std::make_shared<MetricsListener>(std::move(listener), metrics_));
}

}  // namespace slip
