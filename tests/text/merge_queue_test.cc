// The lowest rank first, then the leftmost, in whatever order pairs come.
#include "text/merge_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace slip {
namespace {

TEST(MergeQueue, TakesTheLeastOfAllThatWait) {
  MergeQueue queue;
  uint32_t state = 1;
  const auto random = [&](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
  };
  for (const uint32_t ranks : {1u, 3u, 500u}) {
    queue.begin(ranks);
    std::multiset<std::pair<uint32_t, int32_t>> waiting;
    for (int step = 0; step < 20000; ++step) {
      // Fills up, then runs dry.
      if (random(10) < (step < 10000 ? 6u : 4u)) {
        const std::pair pair(random(ranks), int32_t(random(1000)));
        queue.push({pair.first, pair.second});
        waiting.insert(pair);
      } else if (!waiting.empty()) {
        const auto [rank, position] = queue.pop();
        ASSERT_EQ(std::pair(rank, position), *waiting.begin());
        waiting.erase(waiting.begin());
      }
      ASSERT_EQ(queue.empty(), waiting.empty());
    }
    while (!queue.empty()) queue.pop();
  }
}

}  // namespace
}  // namespace slip
