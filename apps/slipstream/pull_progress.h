// How a download looks: one line that changes on a terminal, a line now and then elsewhere. All of
// it on standard error.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "base/clock.h"
#include "hub/pull.h"
#include "model_flags.h"

namespace slip {

// How often progress is shown.
inline constexpr double kLineInterval = 0.2;   // seconds, on a terminal
inline constexpr double kReportInterval = 10;  // elsewhere

// "2 h 05 min", "1 min 17 s", "9 s"
std::string describe_seconds(double seconds);

// Bytes per second over the last moments.
class RateMeter {
 public:
  void add(double seconds, uint64_t bytes);
  double rate() const;  // 0 while nothing is known

 private:
  struct Sample {
    double seconds;
    uint64_t bytes;
  };
  std::deque<Sample> samples_;
};

class PullDisplay : public PullListener {
 public:
  struct Style {
    bool quiet = false;
    bool one_line = false;  // a terminal that can overwrite a line
    int columns = 80;
    // A model that could not run here is not fetched, instead of noted.
    bool only_what_runs = false;
  };
  // `flags`: what it would run with. They must outlive this.
  PullDisplay(std::string name, const ModelFlags& flags, const Style& style)
      : name_(std::move(name)), flags_(flags), style_(style) {}

  void waiting_for_another() override;
  void damaged(const std::string& path) override;
  bool planned(const PullPlan& plan) override;
  Status configured(const std::string& config, uint64_t weight_bytes) override;
  void progressed(const DownloadProgress& now) override;

  // The last line, after pull() has returned.
  void finished(const PullResult& result);

  // "[####....]  41 %  2.7 of 6.7 GB  512 MB/s  8 s left"
  static std::string line(const DownloadProgress& now, double rate);

 private:
  void say(const std::string& text);
  void clear_line();
  bool is_due(const DownloadProgress& now);

  std::string name_;
  const ModelFlags& flags_;
  Style style_;
  Stopwatch clock_;
  RateMeter meter_;
  double shown_at_ = 0;
  std::optional<double> began_at_;
  uint64_t first_bytes_ = 0, last_bytes_ = 0, troubles_shown_ = 0;
  bool line_open_ = false;
};

}  // namespace slip
