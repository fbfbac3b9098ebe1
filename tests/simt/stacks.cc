#include "tests/simt/stacks.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace simt {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;  // taken page by page, as it is used
constexpr size_t kGuardBytes = 4096;

std::byte* map_stack() {
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    std::perror("simt: a stack");
    std::abort();
  }
  return static_cast<std::byte*>(memory);
}

}  // namespace

Stack::~Stack() {
  if (memory_) munmap(memory_, kStackBytes);
}

#ifdef __x86_64__

// The registers that a function must leave as they were are kept on the stack that is left.
asm(R"(
.text
.p2align 4
.type simt_switch, @function
simt_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size simt_switch, .-simt_switch
.type simt_enter, @function
simt_enter:
  mov %r12, %rdi
  call *%r13
  ud2
.size simt_enter, .-simt_enter
)");
extern "C" void simt_switch(void** from, void* to) __asm__("simt_switch");
extern "C" void simt_enter() __asm__("simt_enter");

void Stack::begin(void (*body)(void*), void* argument) {
  memory_ = map_stack();
  auto* top = reinterpret_cast<uint64_t*>(memory_ + kStackBytes) - 2;  // as after a call
  *--top = reinterpret_cast<uint64_t>(simt_enter);
  *--top = 0;                                     // rbp
  *--top = 0;                                     // rbx
  *--top = reinterpret_cast<uint64_t>(argument);  // r12
  *--top = reinterpret_cast<uint64_t>(body);      // r13
  *--top = 0;                                     // r14
  *--top = 0;                                     // r15
  top_ = top;
}

void switch_stacks(Stack& from, Stack& to) { simt_switch(&from.top_, to.top_); }

#else

void Stack::begin(void (*body)(void*), void* argument) {
  memory_ = map_stack();
  getcontext(&context_);
  context_.uc_stack.ss_sp = memory_;
  context_.uc_stack.ss_size = kStackBytes;
  const auto bits = reinterpret_cast<uintptr_t>(argument);
  const auto code = reinterpret_cast<uintptr_t>(body);
  const auto enter = +[](unsigned b0, unsigned b1, unsigned a0, unsigned a1) {
    const auto whole = [](unsigned low, unsigned high) { return uint64_t(high) << 32 | low; };
    reinterpret_cast<void (*)(void*)>(whole(b0, b1))(reinterpret_cast<void*>(whole(a0, a1)));
  };
  makecontext(&context_, reinterpret_cast<void (*)()>(enter), 4, unsigned(code),
              unsigned(uint64_t(code) >> 32), unsigned(bits), unsigned(uint64_t(bits) >> 32));
}

void switch_stacks(Stack& from, Stack& to) { swapcontext(&from.context_, &to.context_); }

#endif

}  // namespace simt
