#include "base/threads.h"

#include <sched.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace slip {
namespace {

// About 50 us of polling: several times the gap between two regions of a decode step, and short
// enough that a chat waiting for its user costs nothing.
constexpr int kSpins = 2000;

// Layout of a share: 24 bits of region number, 20 of its end, 20 of the next item.
constexpr int kCountBits = 20;
constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;
constexpr int64_t kMaxItems = int64_t(kCountMask);

uint64_t make_share(uint64_t region, int64_t begin, int64_t end) {
  return (region << (2 * kCountBits)) | (uint64_t(end) << kCountBits) | uint64_t(begin);
}

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) : shares_(std::make_unique<Share[]>(size_t(threads))) {
  for (int thread = 1; thread < threads; ++thread)
    workers_.emplace_back([this, thread] { work_loop(thread); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  opened_.fetch_add(1);
  opened_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_erased(int64_t items, Call call, const void* context) {
  call_ = call;
  context_ = context;
  for (first_item_ = 0; first_item_ < items; first_item_ += kMaxItems)
    run_region(std::min(kMaxItems, items - first_item_));
}

void ThreadPool::run_region(int64_t items) {
  done_.store(0, std::memory_order_relaxed);
  const uint64_t region = opened_.load(std::memory_order_relaxed) + uint64_t{1};
  for (int t = 0; t < threads(); ++t)
    shares_[size_t(t)].word.store(
        make_share(region, items * t / threads(), items * (t + 1) / threads()),
        std::memory_order_release);
  opened_.fetch_add(1);  // sequentially consistent, as is the sleepers' announcement
  if (sleepers_.load() > 0) opened_.notify_all();
  claim_items(0);
  for (int spins = 0; done_.load(std::memory_order_acquire) < items; ++spins) {
    if (spins < kSpins) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::claim_items(int thread) {
  for (int i = 0; i < threads(); ++i) claim_share((thread + i) % threads(), thread);
}

void ThreadPool::claim_share(int owner, int thread) {
  std::atomic<uint64_t>& word = shares_[size_t(owner)].word;
  uint64_t share = word.load(std::memory_order_acquire);
  int64_t ran = 0;  // reported once: threads would fight over the count after every item
  for (;;) {
    const auto next = int64_t(share & kCountMask);
    if (next >= int64_t((share >> kCountBits) & kCountMask)) break;
    if (!word.compare_exchange_weak(share, share + 1, std::memory_order_acq_rel)) continue;
    call_(context_, first_item_ + next, thread);
    ++ran;
    share = word.load(std::memory_order_acquire);
  }
  if (ran > 0) done_.fetch_add(ran, std::memory_order_release);
}

void ThreadPool::work_loop(int thread) {
  uint32_t seen = 0;
  for (;;) {
    int spins = 0;
    while (opened_.load(std::memory_order_acquire) == seen) {
      if (++spins < kSpins) {
        pause();
        continue;
      }
      sleepers_.fetch_add(1);
      opened_.wait(seen);
      sleepers_.fetch_sub(1);
    }
    seen = opened_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    claim_items(thread);
  }
}

int available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

}  // namespace slip
