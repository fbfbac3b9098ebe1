// How a download looks.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "hub/pull.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/progress_line.h"

namespace slip {

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
    ProgressLine::Style line{};
    // A model that could not run here is not fetched, instead of noted.
    bool only_what_runs = false;
  };
  // `flags`: what it would run with. They must outlive this.
  PullDisplay(std::string name, const ModelFlags& flags, const Style& style)
      : name_(std::move(name)),
        flags_(flags),
        only_what_runs_(style.only_what_runs),
        line_(style.line) {}

  // Before pull().
  void looking_at(const std::string& hub);

  void trying_again(const std::string& why) override;
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
  std::string name_;
  const ModelFlags& flags_;
  bool only_what_runs_;
  ProgressLine line_;
  RateMeter meter_;
  std::optional<double> began_at_;
  uint64_t first_bytes_ = 0, last_bytes_ = 0, troubles_shown_ = 0;
};

}  // namespace slip
