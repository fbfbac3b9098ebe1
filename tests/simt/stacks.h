// Stacks to run on, and the way from one to the other.
#pragma once

#include <ucontext.h>

#include <cstddef>

namespace simt {

class Stack {
 public:
  Stack() = default;
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // The first switch to this stack calls body(argument), which never returns.
  void begin(void (*body)(void*), void* argument);
  bool begun() const { return memory_ != nullptr; }

 private:
  friend void switch_stacks(Stack& from, Stack& to);

  std::byte* memory_ = nullptr;
#ifdef __x86_64__
  void* top_ = nullptr;  // where registers were left
#else
  ucontext_t context_{};
#endif
};

// Goes on where `to` was left. Returns when something switches to `from` again.
void switch_stacks(Stack& from, Stack& to);

}  // namespace simt
