// Instructions that C++ has no words for, and the memory that a launch brings. All assembly is
// here: tests run the same kernels on a CPU with another version of this file (tests/simt).
#pragma once

#include <cstddef>
#include <cstdint>

namespace slip {

// --- Launches

// Everything before this may overlap the end of the kernel before: see launch() in launch.h. Every
// kernel calls it before its first access to anything that a kernel may have written.
__device__ __forceinline__ void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel begin (it waits in wait_for_inputs() until this one has ended). Worth
// calling early, when all loads of weights are on their way. Kernels that read a state or a cache
// call it behind wait_for_inputs(): before, all that follow them as far as the next weights would
// begin, too, and take the memory from the one in front.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The shared memory that the launch asked for, beside what the kernel declares.
extern __shared__ __align__(128) std::byte launch_memory[];

// A barrier of the block's first `threads` threads, whole warps, alone.
__device__ __forceinline__ void sync_first_threads(int threads) {
  asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
}

// Adds one to a counter that blocks share, and returns what it was. What the block wrote before its
// last barrier is seen by whoever counts later and, after a barrier, by the blocks of those.
__device__ __forceinline__ uint32_t count_arrival(uint32_t& counter) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(&counter))
               : "memory");
  return before;
}

// --- Loads from global memory

// Weights are read once in a step and never written: they leave the caches before what is read
// again.
__device__ __forceinline__ uint4 load_stream(const void* p) {
  uint4 v;
  asm volatile("ld.global.cs.nc.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

// Half of that.
__device__ __forceinline__ uint2 load_stream_half(const void* p) {
  uint2 v;
  asm volatile("ld.global.cs.nc.L2::256B.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}

// Asks for the line at `p` to be brought closer. Nothing is read, so it may come before
// wait_for_inputs().
__device__ __forceinline__ void prefetch_line(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// Brings the line at `p`, which is not written any more, to the first-level cache. Nobody waits.
__device__ __forceinline__ void bring_line(const void* p) {
  [[maybe_unused]] uint32_t unused;
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(unused) : "l"(p));
}

// --- Copies from global to shared memory that go on while a thread computes. A thread sees its own
// when it has waited for them; other threads' after a barrier behind that.

// 16 bytes of a stream, both addresses aligned to them; past the first-level cache.
__device__ __forceinline__ void copy_16_async(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(
                   uint32_t(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
}

// 16 bytes whose neighbours are not asked for with them.
__device__ __forceinline__ void copy_piece_async(void* shared, const void* global) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(shared))),
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

// --- Products of a warp. For lane l, with g = l / 4 and j = l % 4, sums are [0] output g, column
// 2 j; [1] the next column; [2] [3] the same of output g + 8.

// 16 outputs x 16 inputs: w[0] output g, inputs 2 j and 2 j + 1; w[1] output g + 8; w[2] [3] inputs
// 8 on. b0, b1: the same inputs of column g. Pairs of f16.
__device__ __forceinline__ void mma_f16(float (&sums)[4], const uint32_t (&w)[4], uint32_t b0,
                                        uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(b0), "r"(b1));
}

// The same of bf16. Volatile: left to itself, the compiler makes one long chain of these.
__device__ __forceinline__ void mma_bf16(float (&sums)[4], const uint32_t (&w)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(b0), "r"(b1));
}

// 16 outputs x 32 inputs: unsigned bytes, four where a word above has two; b: signed ones.
__device__ __forceinline__ void mma_bytes(int (&sums)[4], uint32_t w0, uint32_t w1, uint32_t w2,
                                          uint32_t w3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(w0), "r"(w1), "r"(w2), "r"(w3), "r"(b0), "r"(b1));
}

// --- Arithmetic

// (a & mask) | bits.
__device__ __forceinline__ uint32_t masked_or(uint32_t a, uint32_t mask, uint32_t bits) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
}

// Nearly 1 / x.
__device__ __forceinline__ float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float exp2_fast(float x) {  // 2 ulp
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two floats as f16, the largest finite ones if they are beyond.
__device__ __forceinline__ uint32_t saturated_halves(float low, float high) {
  uint32_t halves;
  asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
  return halves;
}

}  // namespace slip
