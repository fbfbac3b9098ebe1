#include "timed_ops.h"

#include <algorithm>
#include <numeric>

namespace slip {

std::vector<TimedOps::Part> TimedOps::parts() const {
  std::vector<Part> parts;
  for (size_t i = 0; i < kNames.size(); ++i)
    if (seconds_[i] > 0) parts.push_back({kNames[i], seconds_[i]});
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.seconds > b.seconds; });
  return parts;
}

double TimedOps::seconds(const std::string& name) const {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return seconds_[i];
  return 0;
}

double TimedOps::total() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

}  // namespace slip
