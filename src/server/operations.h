// What operators and their tools ask: is it well, how busy is it, which version is it. And the chat
// page, which is a file in the binary.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/service.h"
#include "server/api.h"
#include "server/canary.h"
#include "server/metrics.h"

namespace slip {

class Operations {
 public:
  Operations(std::string version, const Metrics& metrics);

  // How things go, from any thread: loading first, then ready, then draining.
  void set_loading(double progress);  // 0 to 1
  void set_ready(Service* service);
  void set_draining();
  // The service is about to end.
  void forget_service();

  std::vector<ApiRoute> routes();

 private:
  enum class Stage { loading, ready, draining };

  void answer_health(HttpReply& reply) const;
  void answer_metrics(HttpReply& reply) const;

  const std::string version_;
  const Metrics& metrics_;
  mutable std::mutex mutex_;
  Stage stage_ = Stage::loading;
  double progress_ = 0;
  Service* service_ = nullptr;
  mutable std::optional<Canary> canary_;  // of the service
};

}  // namespace slip
