// Copies from global to shared memory that a thread need not wait for. They count in groups: a
// thread closes a group of its own copies and later waits until all but its newest groups are done.
// Then it sees what it copied; what others copied it sees after a barrier with them.
#pragma once

#include <cstdint>

namespace slip {

__device__ __forceinline__ uint32_t shared_address(const void* shared) {
  return uint32_t(__cvta_generic_to_shared(shared));
}

// 16 bytes, past the first-level cache; both addresses aligned.
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(shared_address(shared)),
               "l"(global)
               : "memory");
}

__device__ __forceinline__ void copy_async_word(void* shared, const void* global) {  // 4 bytes
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(shared)), "l"(global)
               : "memory");
}

__device__ __forceinline__ void close_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int kGroupsOnTheWay>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroupsOnTheWay) : "memory");
}

}  // namespace slip
