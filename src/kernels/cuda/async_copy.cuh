// Copies from global to shared memory that go on while a thread computes. A thread sees its own
// when it has waited for them; other threads' after a barrier behind that.
#pragma once

#include <cstdint>

namespace slip {

// 16 bytes, both addresses aligned to them; past the first-level cache.
__device__ __forceinline__ void copy_16_async(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(
                   uint32_t(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
}

__device__ __forceinline__ void copy_4_async(void* shared, const void* global) {
  asm volatile(
      "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(uint32_t(__cvta_generic_to_shared(shared))),
      "l"(global)
      : "memory");
}

// Ends a group: the copies that this thread has asked for since the last one.
__device__ __forceinline__ void end_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most the newest kGroups groups of this thread are under way.
template <int kGroups>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

}  // namespace slip
