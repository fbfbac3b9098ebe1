#include "engine/prompt_cuts.h"

#include <algorithm>

namespace slip {
namespace {

constexpr int64_t kApart = 64;         // checkpoints that lie closer are not worth their memory
constexpr int64_t kInterval = 512;     // between checkpoints where no message ends
constexpr int64_t kMostIntervals = 8;  // of a long prompt, which must not push out all others

void sort_unique(std::vector<int64_t>& places) {
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
}

}  // namespace

PromptCuts cut_prompt(int64_t length, std::span<const int64_t> message_ends, int64_t segment) {
  std::vector<int64_t> messages(message_ends.begin(), message_ends.end());
  std::erase_if(messages, [&](int64_t end) { return end <= 0 || end > length; });
  sort_unique(messages);

  PromptCuts cuts;
  for (const int64_t end : messages)
    if (cuts.checkpoints.empty() || end - cuts.checkpoints.back() >= kApart)
      cuts.checkpoints.push_back(end);
  if (segment == 0) {
    if (!messages.empty()) cuts.checkpoints.push_back(messages.back());
    const int64_t most_apart = (length + kMostIntervals - 1) / kMostIntervals;
    const int64_t interval =
        (std::max(most_apart, kInterval) + kInterval - 1) / kInterval * kInterval;
    for (int64_t place = interval; place < length; place += interval)
      cuts.checkpoints.push_back(place);
    sort_unique(cuts.checkpoints);
    cuts.ends = cuts.checkpoints;
  } else {
    cuts.ends = cuts.checkpoints;
    for (int64_t place = segment; place < length; place += segment) {
      cuts.ends.push_back(place);
      cuts.checkpoints.push_back(place);
    }
    sort_unique(cuts.checkpoints);
  }
  cuts.ends.push_back(length);
  sort_unique(cuts.ends);
  return cuts;
}

}  // namespace slip
