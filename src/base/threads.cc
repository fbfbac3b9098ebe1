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

// A share as one word: 32 bits of region number, 16 of its end, 16 of the next item.
constexpr int64_t kMaxItems = 65535;

struct ShareWord {
  uint32_t region;
  int64_t next, end;
};

uint64_t pack(const ShareWord& share) {
  return uint64_t(share.region) << 32 | uint64_t(share.end) << 16 | uint64_t(share.next);
}

ShareWord unpack(uint64_t word) {
  return {uint32_t(word >> 32), int64_t(word & 0xffff), int64_t(word >> 16 & 0xffff)};
}

// Region numbers wrap around: one of the last two billion is earlier, all others are later.
bool earlier(uint32_t a, uint32_t b) { return int32_t(b - a) > 0; }

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
  region_.opened.fetch_add(1);
  region_.opened.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_erased(int64_t items, Call call, const void* context) {
  region_.call = call;
  region_.context = context;
  for (int64_t first = 0; first < items; first += kMaxItems)
    run_region(first, std::min(kMaxItems, items - first));
}

void ThreadPool::run_region(int64_t first, int64_t items) {
  const int64_t finished_before = finished_by_workers();
  region_.first_item = first;
  region_.items.store(items, std::memory_order_relaxed);
  // Sequentially consistent, as is the sleepers' announcement.
  const uint32_t region = region_.opened.fetch_add(1) + 1;
  if (sleepers_.load() > 0) region_.opened.notify_all();
  const int64_t others = items - claim_items(region, 0);
  for (int spins = 0; finished_by_workers() - finished_before < others; ++spins) {
    if (spins < kSpins) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

int64_t ThreadPool::finished_by_workers() const {
  int64_t sum = 0;
  for (int thread = 1; thread < threads(); ++thread)
    sum += shares_[size_t(thread)].finished.load(std::memory_order_acquire);
  return sum;
}

int64_t ThreadPool::claim_items(uint32_t region, int thread) {
  int64_t ran = 0;
  for (int i = 0; i < threads(); ++i) ran += claim_share(region, (thread + i) % threads(), thread);
  return ran;
}

int64_t ThreadPool::claim_share(uint32_t region, int owner, int thread) {
  std::atomic<uint64_t>& word = shares_[size_t(owner)].word;
  const int64_t items = region_.items.load(std::memory_order_relaxed);
  const ShareWord untouched{region, first_item(items, owner, threads()),
                            first_item(items, owner + 1, threads())};
  int64_t ran = 0;
  for (uint64_t seen = word.load(std::memory_order_acquire);;) {
    ShareWord share = unpack(seen);
    const bool is_untouched = earlier(share.region, region);
    if (is_untouched) share = untouched;
    if (share.region != region) break;  // this thread is late
    if (share.next >= share.end) {
      // Empty ones are marked too: when a region ends no share may look untouched in it, or a late
      // thread would open it with the next region's items.
      if (is_untouched && !word.compare_exchange_strong(seen, pack(share))) continue;
      break;
    }
    const int64_t item = share.next++;
    if (!word.compare_exchange_weak(seen, pack(share), std::memory_order_acq_rel)) continue;
    region_.call(region_.context, region_.first_item + item, thread);
    ++ran;
    seen = word.load(std::memory_order_acquire);
  }
  // Reported once: threads would fight over the line after every item.
  if (ran > 0) shares_[size_t(thread)].finished.fetch_add(ran, std::memory_order_release);
  return ran;
}

void ThreadPool::work_loop(int thread) {
  uint32_t seen = 0;
  for (;;) {
    int spins = 0;
    while (region_.opened.load(std::memory_order_acquire) == seen) {
      if (++spins < kSpins) {
        pause();
        continue;
      }
      sleepers_.fetch_add(1);
      region_.opened.wait(seen);
      sleepers_.fetch_sub(1);
    }
    seen = region_.opened.load(std::memory_order_acquire);
    if (stop_.load()) return;
    claim_items(seen, thread);
  }
}

int available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

}  // namespace slip
