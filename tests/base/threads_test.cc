#include "base/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <vector>

namespace slip {
namespace {

TEST(ThreadPool, RunsEveryItemOnce) {
  for (int threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t items : {0, 1, 2, 3, 7, 8, 9, 64, 1000}) {
      std::vector<std::atomic<int>> runs(size_t(items) + 1);
      std::atomic<bool> strange_thread{false};
      pool.run(items, [&](int64_t item, int thread) {
        ++runs[size_t(item)];
        if (thread < 0 || thread >= threads) strange_thread = true;
      });
      EXPECT_FALSE(strange_thread);
      for (int64_t item = 0; item < items; ++item)
        ASSERT_EQ(runs[size_t(item)], 1) << threads << " threads, item " << item << " of " << items;
    }
  }
}

// Plain writes in one region are read in the next by whichever thread comes first: a missing
// barrier shows as a wrong sum, and under the thread sanitizer as a race.
TEST(ThreadPool, RegionsFollowEachOther) {
  for (const int threads : {2, 4, 8}) {
    ThreadPool pool(threads);
    constexpr int64_t kItems = 16;
    std::vector<int64_t> values(kItems, 1), next(kItems);
    // More threads than processors cost a time slice per region.
    const int regions = threads <= available_threads() ? 5000 : 300;
    for (int region = 0; region < regions; ++region) {
      pool.run(kItems, [&](int64_t item, int) {
        next[size_t(item)] = values[size_t((item + 5) % kItems)] + 1;
      });
      pool.run(kItems, [&](int64_t item, int) { values[size_t(item)] = next[size_t(item)]; });
    }
    for (const int64_t value : values) ASSERT_EQ(value, 1 + regions);
  }
}

TEST(ThreadPool, WakesAfterSleeping) {
  ThreadPool pool(4);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // far beyond the spinning time
    std::atomic<int> count{0};
    pool.run(10, [&](int64_t, int) { ++count; });
    ASSERT_EQ(count, 10);
  }
}

TEST(ThreadPool, EndsWithoutEverRunning) {
  for (int round = 0; round < 50; ++round) ThreadPool pool(1 + round % 8);
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(ThreadPool, IdleUsesNoCpu) {
  ThreadPool pool(8);
  pool.run(100, [](int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // let the workers fall asleep
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // A single spinning worker would use 0.2 s.
  EXPECT_LT(cpu_seconds() - before, 0.02);
}

TEST(AvailableThreads, IsPositive) { EXPECT_GE(available_threads(), 1); }

}  // namespace
}  // namespace slip
