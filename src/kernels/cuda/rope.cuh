// What rotate_and_store() does to one head, whatever the cache.
#pragma once

#include "kernels/args.h"
#include "kernels/cuda/device/spans.h"
#include "kernels/cuda/device/warp.cuh"

namespace slip {

struct RotateParams {
  const float* q;
  const float* k;
  const float* v;
  const float* q_scale;
  const float* k_scale;
  const float* cos;
  const float* sin;
  float* out_q;
  const DeviceSpan* spans;
  int64_t rows;
  int32_t span_count;
  int32_t q_heads, kv_heads, head_dim, q_stride, pairs;  // no kv_heads: queries alone
  int32_t ring_pages;
  float eps;
  bool norm_v;
};

// Widest head there is a kernel for.
inline constexpr int kWidestHead = 512;

inline RotateParams rotate_params(const RotateAndStoreArgs& args, const DeviceSpan* spans) {
  check(args.out_q.shape[2] <= kWidestHead, "rotate_and_store: heads of ", args.out_q.shape[2]);
  return {.q = args.q.f32(),
          .k = args.k.empty() ? nullptr : args.k.f32(),
          .v = args.k.empty() ? nullptr : args.v.f32(),
          .q_scale = args.q_scale.f32(),
          .k_scale = args.k.empty() ? nullptr : args.k_scale.f32(),
          .cos = args.cos.f32(),
          .sin = args.sin.f32(),
          .out_q = args.out_q.f32(),
          .spans = spans,
          .rows = args.q.shape[0],
          .span_count = int32_t(args.spans.size()),
          .q_heads = int32_t(args.q.shape[1]),
          .kv_heads = args.k.empty() ? 0 : int32_t(args.k.shape[1]),
          .head_dim = int32_t(args.out_q.shape[2]),
          .q_stride = int32_t(args.q.shape[2]),
          .pairs = int32_t(args.cos.shape[1]),
          .ring_pages = int32_t(args.kv.ring_pages),
          .eps = args.eps,
          .norm_v = args.norm_v};
}

// The span that a row of the step belongs to, or null.
__device__ __forceinline__ const DeviceSpan* span_of_row(const DeviceSpan* spans, int count,
                                                         int64_t row) {
#pragma unroll 1
  for (int i = 0; i < count; ++i)
    if (row >= spans[i].first_row && row < spans[i].first_row + spans[i].rows) return spans + i;
  return nullptr;
}

// One warp: calls use(i) for each value of a head of at most 32 * kMost.
template <int kMost, class Use>
__device__ __forceinline__ void for_head(int head_dim, const Use& use) {
#pragma unroll
  for (int e = 0; e < kMost; ++e) {
    const int i = int(threadIdx.x) % kWarp + kWarp * e;
    if (i < head_dim) use(i);
  }
}

// One warp, heads of at most 32 * kMost values: head (shared) <- x, normalised, its first 2 * pairs
// dimensions rotated. Without a scale it is 1. Everything is asked for at once: one after the
// other, the answers would take longer than all else.
template <int kMost>
__device__ __forceinline__ void normalise_and_rotate(const RotateParams& p, int64_t row,
                                                     const float* x, const float* scale, int pairs,
                                                     float* head) {
  const int lane = int(threadIdx.x) % kWarp;
  float values[kMost], scales[kMost], cos[kMost / 2], sin[kMost / 2];
#pragma unroll
  for (int e = 0; e < kMost; ++e) {
    const int i = lane + kWarp * e;
    values[e] = i < p.head_dim ? x[i] : 0.0f;
    scales[e] = scale && i < p.head_dim ? scale[i] : 1.0f;
  }
#pragma unroll
  for (int e = 0; e < kMost / 2; ++e) {
    const int j = lane + kWarp * e;
    cos[e] = j < pairs ? p.cos[row * p.pairs + j] : 0.0f;
    sin[e] = j < pairs ? p.sin[row * p.pairs + j] : 0.0f;
  }
  float squares = 0;
#pragma unroll
  for (int e = 0; e < kMost; ++e) squares = fmaf(values[e], values[e], squares);
  const float inverse = 1.0f / sqrtf(warp_sum(squares) / float(p.head_dim) + p.eps);
#pragma unroll
  for (int e = 0; e < kMost; ++e)
    if (lane + kWarp * e < p.head_dim) head[lane + kWarp * e] = values[e] * inverse * scales[e];
  __syncwarp();
#pragma unroll
  for (int e = 0; e < kMost / 2; ++e) {
    const int j = lane + kWarp * e;
    if (j >= pairs) continue;
    const float low = head[j], high = head[j + pairs];
    // Written out: the same bits in every kernel that this is part of.
    head[j] = fmaf(low, cos[e], -__fmul_rn(high, sin[e]));
    head[j + pairs] = fmaf(high, cos[e], __fmul_rn(low, sin[e]));
  }
  __syncwarp();
}

template <int kMost>
__device__ __forceinline__ void rotate_query(const RotateParams& p, int64_t row, int query_head,
                                             float* head) {
  const int64_t at = row * p.q_heads + query_head;
  normalise_and_rotate<kMost>(p, row, p.q + at * p.q_stride, p.q_scale, p.pairs, head);
  float* out = p.out_q + at * p.head_dim;
  for_head<kMost>(p.head_dim, [&](int i) { out[i] = head[i]; });
}

}  // namespace slip
