// Counts what goes to the service and comes back.
#pragma once

#include "server/api_answerer.h"
#include "server/metrics.h"

namespace slip {

// Both must outlive this and every answer.
class MetricsAnswerer final : public Answerer {
 public:
  MetricsAnswerer(Service& service, Metrics& metrics) : service_(service), metrics_(metrics) {}

  std::variant<RequestId, Refusal> submit(Request request,
                                          std::shared_ptr<RequestListener> listener) override;
  void cancel(RequestId id) override { service_.cancel(id); }
  void ended(const RequestSummary& summary) override { metrics_.finished(summary); }
  int64_t context() const override { return service_.context(); }

 private:
  Service& service_;
  Metrics& metrics_;
};

}  // namespace slip
