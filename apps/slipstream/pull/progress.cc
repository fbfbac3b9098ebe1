#include "slipstream/pull/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iomanip>

#include "engine/memory_plan.h"
#include "slipstream/common/numbers.h"
#include "slipstream/pull/check.h"

namespace slip {
namespace {

constexpr double kRateWindow = 5;
constexpr double kTick = 0.1;  // the first word of progress comes this long after the beginning

std::string megabytes_per_second(double rate) { return fixed(rate / 1e6, 0) + " MB/s"; }

}  // namespace

std::string describe_seconds(double seconds) {
  const int64_t whole = std::llround(std::max(seconds, 0.0));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  char text[64];
  if (hours > 0) {
    std::snprintf(text, sizeof(text), "%lld h %02lld min", static_cast<long long>(hours),
                  static_cast<long long>(minutes));
  } else if (minutes > 0) {
    std::snprintf(text, sizeof(text), "%lld min %02lld s", static_cast<long long>(minutes),
                  static_cast<long long>(whole % 60));
  } else {
    std::snprintf(text, sizeof(text), "%lld s", static_cast<long long>(whole));
  }
  return text;
}

void RateMeter::add(double seconds, uint64_t bytes) {
  // A file that is fetched again makes the count fall: begin anew.
  if (!samples_.empty() && bytes < samples_.back().bytes) samples_.clear();
  samples_.push_back({seconds, bytes});
  while (samples_.size() > 2 && seconds - samples_[1].seconds > kRateWindow) samples_.pop_front();
}

double RateMeter::rate() const {
  if (samples_.size() < 2) return 0;
  const double seconds = samples_.back().seconds - samples_.front().seconds;
  return seconds > 0 ? double(samples_.back().bytes - samples_.front().bytes) / seconds : 0;
}

std::string PullDisplay::line(const DownloadProgress& now, double rate) {
  constexpr int kWidth = 20;
  const double share = now.total ? double(now.done) / double(now.total) : 1;
  std::string bar(size_t(share * kWidth), '#');
  bar.resize(kWidth, '.');
  std::string text = cat("[", bar, "] ", std::setw(3), int(100 * share), " %  ",
                         describe_bytes(now.done), " of ", describe_bytes(now.total));
  if (now.done == now.total) return text + "  checking";
  text += "  " + megabytes_per_second(rate);
  if (rate > 0) text += cat("  ", describe_seconds(double(now.total - now.done) / rate), " left");
  return text;
}

void PullDisplay::looking_at(const std::string& hub) {
  line_.show(cat("looking at ", hub, " ..."));
}

void PullDisplay::trying_again(const std::string& why) { line_.say(cat("trying again: ", why)); }

void PullDisplay::waiting_for_another() {
  line_.say(cat("another process is pulling ", name_, "; waiting for it"));
}

void PullDisplay::damaged(const std::string& path) {
  line_.say(cat(path, " is damaged and is fetched again"));
}

bool PullDisplay::planned(const PullPlan& plan) {
  first_bytes_ = last_bytes_ = plan.bytes_resumed;
  if (plan.bytes_to_fetch == 0) return true;
  line_.say(cat(name_, " at ", plan.commit.substr(0, 12), ": ", describe_bytes(plan.bytes_to_fetch),
                " to fetch",
                plan.bytes_resumed > 0
                    ? cat(", ", describe_bytes(plan.bytes_resumed), " of it came earlier")
                    : "",
                " (", plan.files, plan.files == 1 ? " file, " : " files, ",
                describe_bytes(plan.bytes), " in all)"));
  return true;
}

Status PullDisplay::configured(const std::string& config, uint64_t weight_bytes) {
  const Status runs = check_before_download(config, weight_bytes, flags_);
  if (runs.ok()) return {};
  if (only_what_runs_)
    return error(name_, " would not run here, so it is not downloaded: ", runs.failure().message,
                 "; slipstream pull ", name_, " fetches it anyway");
  line_.say(cat("note: this would not run here: ", runs.failure().message));
  return {};
}

void PullDisplay::progressed(const DownloadProgress& now) {
  if (!began_at_) began_at_ = line_.seconds() - kTick;
  last_bytes_ = now.done;
  meter_.add(line_.seconds(), now.done);
  if (now.total == 0 || !line_.is_due()) return;
  std::string text = line(now, meter_.rate());
  if (!line_.changes()) {
    if (now.troubles > troubles_shown_) text += cat("  (tried again: ", now.trouble, ")");
    troubles_shown_ = now.troubles;
  } else if (now.troubles > 0 && meter_.rate() == 0) {
    text = cat("trying again: ", now.trouble);
  }
  line_.show(text);
}

void PullDisplay::finished(const PullResult& result) {
  line_.clear();
  switch (result.end) {
    case PullResult::End::complete: {
      if (result.plan.bytes_to_fetch == 0)
        return line_.say(cat(name_, " is complete and up to date"));
      const double seconds = std::max(line_.seconds() - began_at_.value_or(0), 1e-3);
      const uint64_t bytes = last_bytes_ - std::min(first_bytes_, last_bytes_);
      return line_.say(cat(name_, ": ", describe_bytes(bytes), " in ", describe_seconds(seconds),
                           " (", megabytes_per_second(double(bytes) / seconds),
                           "), all checksums are right"));
    }
    case PullResult::End::interrupted:
      return line_.say("interrupted; what has come is kept: run it again to go on");
    case PullResult::End::declined: return;
  }
}

}  // namespace slip
