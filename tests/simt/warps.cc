#include "tests/simt/warps.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "tests/simt/stacks.h"

simt::Extent threadIdx, blockIdx, blockDim, gridDim;

namespace simt {

constexpr size_t kMostShared = size_t{232448};
alignas(1024) std::byte launch_memory[kMostShared];

namespace {

constexpr size_t kMostThreads = 1024;

enum class State { ready, in_warp, in_block, in_some, ended };

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
};

struct Thread {
  Stack stack;
  State state = State::ended;
  Extent index{};
  WarpOperation operation = nullptr;
  bool vote = false;   // at a barrier
  int companions = 0;  // at a barrier of some
  std::vector<Copy> copies;
  std::deque<size_t> groups;  // copies in each, oldest first
  size_t ungrouped = 0;
};

[[noreturn]] void fail(const std::string& what) {
  const Extent b = blockIdx;
  std::fprintf(stderr, "simt: %s (block %u %u %u)\n", what.c_str(), b.x, b.y, b.z);
  std::abort();
}

class Block {
 public:
  void run(Extent size, size_t shared_bytes, const std::function<void()>& kernel);

  Thread& current() { return *current_; }
  void wait(State state);
  Payload& in(const Thread& thread) { return in_[index_of(thread)]; }
  Payload& out(const Thread& thread) { return out_[index_of(thread)]; }
  int votes() const { return votes_; }

 private:
  size_t index_of(const Thread& thread) const { return size_t(&thread - threads_.data()); }
  void go_on(Stack& from, Thread& thread);
  static void body(void*);
  bool run_warp(size_t first);
  bool finish_warp_operation(size_t first);
  bool finish_barrier();
  bool finish_barrier_of_some();
  void explain_standstill();

  std::vector<Thread> threads_ = std::vector<Thread>(kMostThreads);
  Payload in_[kMostThreads], out_[kMostThreads];
  Stack scheduler_;
  Thread* current_ = nullptr;
  const std::function<void()>* kernel_ = nullptr;
  size_t count_ = 0;
  int votes_ = 0;
  uint64_t order_ = 0;  // of warps, another in every block
};

Block the_block;

void Block::body(void*) {
  for (;;) {  // a stack serves one thread of one block after the other
    (*the_block.kernel_)();
    the_block.wait(State::ended);
  }
}

void Block::go_on(Stack& from, Thread& thread) {
  current_ = &thread;
  threadIdx = thread.index;
  switch_stacks(from, thread.stack);
}

// The next lane of the warp has its turn, or, behind the last, whatever can go on.
void Block::wait(State state) {
  Thread& thread = *current_;
  thread.state = state;
  const size_t next = index_of(thread) + 1;
  if (next % kLanes != 0 && next < count_ && threads_[next].state == State::ready)
    go_on(thread.stack, threads_[next]);
  else
    switch_stacks(thread.stack, scheduler_);
}

void Block::run(Extent size, size_t shared_bytes, const std::function<void()>& kernel) {
  count_ = size_t(size.x) * size.y * size.z;
  kernel_ = &kernel;
  std::memset(launch_memory, 0xff, shared_bytes);
  blockDim = size;
  for (size_t i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    if (!thread.stack.begun()) thread.stack.begin(body, nullptr);
    thread.state = State::ready;
    thread.index = {unsigned(i % size.x), unsigned(i / size.x % size.y),
                    unsigned(i / size.x / size.y)};
    thread.copies.clear();
    thread.groups.clear();
    thread.ungrouped = 0;
  }
  const size_t warps = (count_ + kLanes - 1) / kLanes;
  order_ = order_ * 6364136223846793005u + 1442695040888963407u;
  const size_t begin = size_t(order_ >> 33) % warps;
  const bool backwards = order_ >> 63;
  for (;;) {
    bool progress = false;
    for (size_t i = 0; i < warps; ++i) {
      const size_t warp = (begin + (backwards ? warps - i : i)) % warps;
      progress |= run_warp(warp * kLanes);
    }
    if (std::all_of(threads_.begin(), threads_.begin() + std::ptrdiff_t(count_),
                    [](const Thread& thread) { return thread.state == State::ended; }))
      return;
    if (!finish_barrier() && !finish_barrier_of_some() && !progress) explain_standstill();
  }
}

// Until all of its lanes have ended or wait for other warps.
bool Block::run_warp(size_t first) {
  bool progress = false;
  do {
    for (size_t i = first; i < std::min(first + kLanes, count_); ++i) {
      if (threads_[i].state != State::ready) continue;
      go_on(scheduler_, threads_[i]);
      progress = true;
    }
  } while (finish_warp_operation(first));
  return progress;
}

bool Block::finish_warp_operation(size_t first) {
  uint32_t present = 0;
  WarpOperation operation = nullptr;
  const size_t lanes = std::min<size_t>(kLanes, count_ - first);
  for (size_t i = 0; i < lanes; ++i) {
    const Thread& thread = threads_[first + i];
    if (thread.state == State::ended) continue;
    if (thread.state != State::in_warp) return false;
    if (operation && thread.operation != operation)
      fail("lanes of a warp are at different operations");
    operation = thread.operation;
    present |= 1u << i;
  }
  if (!operation) return false;
  operation(in_ + first, out_ + first, present);
  for (size_t i = 0; i < lanes; ++i)
    if (present >> i & 1) threads_[first + i].state = State::ready;
  return true;
}

bool Block::finish_barrier() {
  int votes = 0;
  for (size_t i = 0; i < count_; ++i) {
    const Thread& thread = threads_[i];
    if (thread.state != State::in_block && thread.state != State::ended) return false;
    votes += thread.state == State::in_block && thread.vote ? 1 : 0;
  }
  votes_ = votes;
  for (size_t i = 0; i < count_; ++i)
    if (threads_[i].state == State::in_block) threads_[i].state = State::ready;
  return true;
}

bool Block::finish_barrier_of_some() {
  int waiting = 0, wanted = 0;
  for (size_t i = 0; i < count_; ++i) {
    if (threads_[i].state != State::in_some) continue;
    if (wanted != 0 && wanted != threads_[i].companions)
      fail("threads do not agree on how many meet at a barrier");
    wanted = threads_[i].companions;
    ++waiting;
  }
  if (waiting == 0 || waiting != wanted) return false;
  for (size_t i = 0; i < count_; ++i)
    if (threads_[i].state == State::in_some) threads_[i].state = State::ready;
  return true;
}

void Block::explain_standstill() {
  int in[5] = {};
  for (size_t i = 0; i < count_; ++i) ++in[int(threads_[i].state)];
  fail("nothing goes on: " + std::to_string(in[int(State::in_warp)]) +
       " threads wait for their warp, " + std::to_string(in[int(State::in_block)]) +
       " for the block, " + std::to_string(in[int(State::in_some)]) + " for some of it, " +
       std::to_string(in[int(State::ended)]) + " have ended");
}

}  // namespace

void run_grid(Extent grid, Extent block_size, size_t shared_bytes,
              const std::function<void()>& kernel) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  gridDim = grid;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        the_block.run(block_size, shared_bytes, kernel);
      }
}

Payload with_warp(const Payload& mine, WarpOperation operation) {
  Thread& thread = the_block.current();
  the_block.in(thread) = mine;
  thread.operation = operation;
  the_block.wait(State::in_warp);
  return the_block.out(thread);
}

int sync_block(bool value) {
  the_block.current().vote = value;
  the_block.wait(State::in_block);
  return the_block.votes();
}

void sync_some(int threads) {
  the_block.current().companions = threads;
  the_block.wait(State::in_some);
}

void copy_later(void* to, const void* from, size_t bytes) {
  Thread& thread = the_block.current();
  thread.copies.push_back({to, from, bytes});
  ++thread.ungrouped;
}

void end_copy_group() {
  Thread& thread = the_block.current();
  thread.groups.push_back(thread.ungrouped);
  thread.ungrouped = 0;
}

void wait_for_copies(int newest_groups) {
  Thread& thread = the_block.current();
  size_t arrived = 0;
  while (thread.groups.size() > size_t(newest_groups)) {
    arrived += thread.groups.front();
    thread.groups.pop_front();
  }
  for (size_t i = 0; i < arrived; ++i)
    std::memcpy(thread.copies[i].to, thread.copies[i].from, thread.copies[i].bytes);
  thread.copies.erase(thread.copies.begin(), thread.copies.begin() + std::ptrdiff_t(arrived));
}

}  // namespace simt
