// The best of many, in order: what a choice by chance needs of a row of logits.
//
// A block keeps 8,192 keys in registers and finds the smallest of the best by bisection: one bit of
// it for each time that all threads count the keys that are not smaller. Keys are distinct, so the
// bits end where the count is exact; that takes some twenty counts where values differ, and all 64
// bits where they are equal. What a row's blocks have found, a block chooses from in the same way.
#include <algorithm>

#include "kernels/cuda/candidates.h"
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kWarps = kKeyThreads / kWarp;
static_assert(kWarps == kWarp, "a warp adds up what the warps have counted");
static_assert(kCandidates <= kKeyThreads);

__device__ __forceinline__ CandidateKey key_of(float value, int64_t id) {
  // Numbers alone, and one zero.
  const uint32_t bits = __float_as_uint(fmaxf(value, -INFINITY) + 0.0f);
  const uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000u;
  return CandidateKey(rising) << 32 | uint32_t(~id);
}

__device__ __forceinline__ Candidate candidate_of(CandidateKey key) {
  if (key == 0) return {-1, -INFINITY};
  const auto rising = uint32_t(key >> 32);
  const uint32_t bits = rising >> 31 ? rising & 0x7fffffffu : ~rising;
  return {int32_t(~uint32_t(key)), __uint_as_float(bits)};
}

// The smallest of the kCandidates best keys of a block; 0 where it has no more than those.
__device__ CandidateKey smallest_of_best(const CandidateKey (&keys)[kKeysPerThread]) {
  __shared__ int counts[2][kWarps];  // in turns: one barrier per count
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  CandidateKey smallest = 0;
#pragma unroll 1
  for (int bit = 63; bit >= 0; --bit) {
    const CandidateKey larger = smallest | CandidateKey(1) << bit;
    int count = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerThread; ++i) count += keys[i] >= larger ? 1 : 0;
    count = __reduce_add_sync(~0u, count);
    if (lane == 0) counts[bit % 2][warp] = count;
    __syncthreads();
    count = __reduce_add_sync(~0u, counts[bit % 2][lane]);
    if (count >= kCandidates) smallest = larger;
    if (count == kCandidates) break;
  }
  return smallest;
}

// The kCandidates best keys of a block in any order, to be read behind a barrier; 0 where there are
// no more.
__device__ void keep_best(const CandidateKey (&keys)[kKeysPerThread],
                          CandidateKey (&best)[kCandidates]) {
  __shared__ int kept;
  if (threadIdx.x == 0) kept = 0;
  if (threadIdx.x < kCandidates) best[threadIdx.x] = 0;
  const CandidateKey smallest = smallest_of_best(keys);  // has a barrier
#pragma unroll
  for (int i = 0; i < kKeysPerThread; ++i)
    if (keys[i] != 0 && keys[i] >= smallest) best[atomicAdd(&kept, 1)] = keys[i];
  __syncthreads();
}

// Block (part, row): the best of a part of a row, in any order. Registers for two blocks per
// multiprocessor: five rows of 248,320 are 155 of them.
__global__ void __maxnreg__(32)
    best_of_parts_kernel(const float* x, int64_t width, CandidateKey* out) {
  __shared__ CandidateKey best[kCandidates];
  wait_for_inputs();
  const float* row = x + blockIdx.y * width;
  CandidateKey keys[kKeysPerThread];
#pragma unroll
  for (int i = 0; i < kKeysPerThread; ++i) {
    const int64_t id = int64_t(blockIdx.x) * kBlockKeys + i * kKeyThreads + threadIdx.x;
    keys[i] = id < width ? key_of(row[id], id) : 0;
  }
  keep_best(keys, best);
  if (threadIdx.x < kCandidates)
    out[(int64_t(blockIdx.y) * gridDim.x + blockIdx.x) * kCandidates + threadIdx.x] =
        best[threadIdx.x];
}

// Block per row, of which `count` keys are left.
__global__ void __launch_bounds__(kKeyThreads)
    best_of_row_kernel(const CandidateKey* parts, int count, Candidate* out) {
  __shared__ CandidateKey best[kCandidates], sorted[kCandidates];
  wait_for_inputs();
  CandidateKey keys[kKeysPerThread];
#pragma unroll
  for (int i = 0; i < kKeysPerThread; ++i) {
    const int at = i * kKeyThreads + int(threadIdx.x);
    keys[i] = at < count ? parts[int64_t(blockIdx.x) * count + at] : 0;
  }
  keep_best(keys, best);
  const int place = int(threadIdx.x);
  if (place < kCandidates) {
    const CandidateKey key = best[place];
    int rank = 0;
    for (int i = 0; i < kCandidates; ++i)  // keys differ, but there may be several that are none
      rank += best[i] > key || (best[i] == key && i < place) ? 1 : 0;
    sorted[rank] = key;
  }
  __syncthreads();
  // Side by side: this may be the host's memory.
  if (place < kCandidates)
    out[int64_t(blockIdx.x) * kCandidates + place] = candidate_of(sorted[place]);
}

}  // namespace

void CudaOps::candidates(const CandidatesArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t width = dims["width"], parts = candidate_parts(width);
  dims.require(width <= kWidestCandidates, "width ", width, " of at most ", kWidestCandidates);
  auto* best = reinterpret_cast<CandidateKey*>(scratch(candidates_scratch_bytes()));
  const auto row_bytes = size_t(parts * kCandidates) * sizeof(CandidateKey);
  const auto rows_at_once = int64_t(candidates_scratch_bytes() / row_bytes);
  for (int64_t row = 0; row < dims["rows"]; row += rows_at_once) {
    const auto rows = unsigned(std::min(rows_at_once, dims["rows"] - row));
    launch(launcher_, dim3(unsigned(parts), rows), dim3(kKeyThreads), 0, best_of_parts_kernel,
           args.x.f32() + row * width, width, best);
    launch(launcher_, dim3(rows), dim3(kKeyThreads), 0, best_of_row_kernel, best,
           int(parts * kCandidates),
           reinterpret_cast<Candidate*>(args.out.i32()) + row * kCandidates);
  }
}

}  // namespace slip
