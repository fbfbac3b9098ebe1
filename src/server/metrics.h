// What Prometheus reads: counters and histograms under vLLM's names, so that dashboards made for it
// work, and a few of our own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/request.h"
#include "engine/service.h"

namespace slip {

// Counts of values by size, with fixed bounds. observe() may be called from any thread.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void observe(double value);
  // Appends the lines that Prometheus reads; `labels` as in `model_name="x"`.
  void expose(std::string& out, const std::string& name, const std::string& help,
              const std::string& labels) const;

 private:
  std::vector<double> bounds_;                      // ascending
  std::unique_ptr<std::atomic<int64_t>[]> counts_;  // one more than bounds: the rest
  std::atomic<double> sum_ = 0;
};

// All methods may be called from any thread.
class Metrics {
 public:
  explicit Metrics(const std::string& model_name);

  // The pause between a token of an answer and the one before it, as the client sees it.
  void token_gap(double seconds);
  // An answer has ended, whatever the reason.
  void finished(const RequestSummary& summary);
  // Any HTTP request has, as the log has it.
  void http_status(int status);

  std::string expose(const ServiceStats& stats) const;

 private:
  enum Ending : uint8_t { stop, length, abort, failed, kEndings };

  std::string labels_;
  std::array<std::atomic<int64_t>, kEndings> endings_{};
  std::array<std::atomic<int64_t>, 6> status_classes_{};  // 4: 400 to 499
  Histogram first_token_, token_gap_, per_token_, whole_, queue_, prompt_, decode_;
  Histogram prompt_tokens_, generated_tokens_;
};

}  // namespace slip
