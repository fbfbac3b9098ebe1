// One pool for the whole program: fork, run numbered items, join.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace slip {

// The calling thread works too, and waits only for items that others have begun: a worker that the
// system has put aside delays nobody. Each thread has a share of the items of its own, the same one
// whenever a region of that size runs, so that weights stay in the cache that is near it; whoever
// is done helps the others. Workers spin for a moment after each region, because the next
// one usually follows within microseconds, and then sleep, so that an idle engine uses no CPU.
// run() is not reentrant and belongs to one thread at a time.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return int(workers_.size()) + 1; }

  // Where the share of a thread begins.
  static int64_t first_item(int64_t items, int thread, int threads) {
    return items * thread / threads;
  }

  // Calls work(item, thread) for every item in [0, items), thread in [0, threads()). The results
  // must not depend on which thread runs an item.
  template <class Work>
  void run(int64_t items, const Work& work) {
    if (items <= 1 || workers_.empty()) {
      for (int64_t item = 0; item < items; ++item) work(item, 0);
      return;
    }
    run_erased(
        items,
        [](const void* context, int64_t item, int thread) {
          (*static_cast<const std::remove_reference_t<Work>*>(context))(item, thread);
        },
        &work);
  }

 private:
  using Call = void (*)(const void* context, int64_t item, int thread);

  void run_erased(int64_t items, Call call, const void* context);
  void run_region(int64_t first, int64_t items);
  void work_loop(int thread);
  int64_t claim_items(uint32_t region, int thread);
  int64_t claim_share(uint32_t region, int owner, int thread);
  int64_t finished_by_workers() const;

  std::vector<std::thread> workers_;

  // Threads talk through few cache lines, since each one that changes hands costs as much as some
  // items: the region goes out in one, and each thread's progress comes back in one.

  // What to run. Written before `opened` is raised, and not again before every claimed item is
  // done, so whoever has claimed an item may read it.
  struct alignas(64) Region {
    std::atomic<uint32_t> opened{0};  // regions so far; what sleeping workers wait on
    std::atomic<int64_t> items{0};
    Call call = nullptr;
    const void* context = nullptr;
    int64_t first_item = 0;
  };
  Region region_;

  // A thread's share of the items. The word holds the number of a region, the end of the share and
  // the next item to claim; one that still names an earlier region is untouched in this one. A
  // worker that wakes up late thus cannot claim an item of a region that is over.
  struct alignas(64) Share {
    std::atomic<uint64_t> word{0};
    std::atomic<int64_t> finished{0};  // items that this thread has run, ever
  };
  std::unique_ptr<Share[]> shares_;  // [threads()]

  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
};

// Processors this process may use.
int available_threads();

}  // namespace slip
