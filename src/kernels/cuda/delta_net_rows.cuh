// How rows of the delta rule come into shared memory: fetched in chunks, ahead of their use, and
// then prepared: queries and keys of unit length, gates as they are applied.
#pragma once

#include <cuda_pipeline.h>

#include "kernels/cuda/delta_net.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/quads.cuh"

namespace slip {

inline constexpr int kDeltaKeys = 128;  // heads with fewer are filled up with zeros

inline constexpr int kChunkRows = 8;
inline constexpr int kRowThreads = 16;  // that fetch and prepare a row
inline constexpr int kChunkThreads = kChunkRows * kRowThreads;
inline constexpr int kRowQuads = kDeltaKeys / kQuad / kRowThreads;

// The part of the work that a block has, and where it lies in memory.
struct DeltaPlace {
  const DeltaNetParams& p;
  DeviceSpan span;
  int head, key_head;
  int column;           // the first of the block's
  float rate, dt_bias;  // nobody writes these: they are read before anything else

  __device__ DeltaPlace(const DeltaNetParams& params, int span_index, int its_head,
                        int first_column)
      : p(params),
        span(params.spans[span_index]),
        head(its_head),
        key_head(head / (params.value_heads / params.key_heads)),
        column(first_column),
        rate(params.rate[head]),
        dt_bias(params.dt_bias[head]) {}

  // Value heads share keys, and blocks share a head; the first of them records.
  __device__ bool records_decays() const { return span.record && column == 0; }
  __device__ bool records_keys() const {
    return records_decays() && head % (p.value_heads / p.key_heads) == 0;
  }

  __device__ float* state() const {
    return p.state + (int64_t(span.state_slot) * p.value_heads + head) * p.key_dim * p.value_dim;
  }
  __device__ const float* query(int row) const {
    const int64_t channels =
        2 * int64_t(p.key_heads) * p.key_dim + int64_t(p.value_heads) * p.value_dim;
    return p.qkv + (span.first_row + row) * channels + key_head * p.key_dim;
  }
  __device__ const float* key(int row) const { return query(row) + p.key_heads * p.key_dim; }
  __device__ const float* value(int row) const {
    return query(row) + (2 * p.key_heads - key_head) * p.key_dim + head * p.value_dim;
  }
  __device__ int64_t gate(int row) const {
    return int64_t(span.first_row + row) * p.value_heads + head;
  }
  __device__ float* out(int row) const { return p.out + gate(row) * p.value_dim; }

  __device__ int64_t recorded(int side, int row) const {
    return (2 * int64_t(span.state_slot) + side) * p.record_rows + row;
  }
  __device__ float* recorded_key(int side, int row) const {
    return p.record_keys + (recorded(side, row) * p.key_heads + key_head) * p.key_dim;
  }
  __device__ float* recorded_delta(int side, int row) const {
    return p.record_deltas + (recorded(side, row) * p.value_heads + head) * p.value_dim;
  }
  __device__ float* recorded_decay(int side, int row) const {
    return p.record_decays + recorded(side, row) * p.value_heads + head;
  }
};

struct alignas(sizeof(float4)) DeltaGates {
  float alpha, beta;  // a and b until the row is prepared
  float key_query;    // k' q'
};

// A row as it is worked on by a block with kStrip columns. Of a recorded one: its key, its delta
// instead of v, alpha.
template <int kStrip>
struct DeltaRow {
  alignas(sizeof(float4)) float q[kDeltaKeys];
  alignas(sizeof(float4)) float k[kDeltaKeys];
  alignas(sizeof(float4)) float v[kStrip];
  DeltaGates gates;
};

// Starts to copy values [i, i + 4) of `count`. Heads of odd sizes are copied at once.
template <bool kWhole>
__device__ __forceinline__ void fetch_quad(float* to, const float* from, int i, int count) {
  if constexpr (kWhole)
    __pipeline_memcpy_async(to + i, from + i, sizeof(float4));
  else
    *reinterpret_cast<float4*>(to + i) = load_quad<false>(from, i, count);
}

// `part`: which of the threads that have this row. Each prepares what it has fetched itself.
template <bool kWhole>
__device__ __forceinline__ void fetch_keys(float* to, const float* from, int part, int key_dim) {
#pragma unroll
  for (int i = 0; i < kRowQuads; ++i)
    fetch_quad<kWhole>(to, from, (i * kRowThreads + part) * kQuad, key_dim);
}

template <bool kWhole, int kStrip>
__device__ __forceinline__ void fetch_columns(float (&to)[kStrip], const float* from, int part,
                                              int columns) {
#pragma unroll
  for (int i = part * kQuad; i < kStrip; i += kRowThreads * kQuad)
    fetch_quad<kWhole>(to, from, i, columns);
}

template <bool kWhole, class Row>
__device__ __forceinline__ void fetch_row(const DeltaPlace& at, int row, int part, Row& to) {
  fetch_keys<kWhole>(to.q, at.query(row), part, at.p.key_dim);
  fetch_keys<kWhole>(to.k, at.key(row), part, at.p.key_dim);
  fetch_columns<kWhole>(to.v, at.value(row) + at.column, part, at.p.value_dim - at.column);
  if (part == 0) {
    __pipeline_memcpy_async(&to.gates.alpha, at.p.a + at.gate(row), sizeof(float));
    __pipeline_memcpy_async(&to.gates.beta, at.p.b + at.gate(row), sizeof(float));
  }
}

template <bool kWhole, class Row>
__device__ __forceinline__ void fetch_recorded(const DeltaPlace& at, int row, int part, Row& to) {
  const int side = 1 - at.span.record_side;
  fetch_keys<kWhole>(to.k, at.recorded_key(side, row), part, at.p.key_dim);
  fetch_columns<kWhole>(to.v, at.recorded_delta(side, row) + at.column, part,
                        at.p.value_dim - at.column);
  // From the second-level cache, as copies of 16 bytes are: the first one may be out of date.
  if (part == 0) to.gates.alpha = __ldcg(at.recorded_decay(side, row));
}

namespace delta_net_rows {

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ __forceinline__ float4 times(float4 x, float factor) {
  return make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
}

__device__ __forceinline__ float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

// Over the threads that have a row.
__device__ __forceinline__ float row_sum(float x) {
#pragma unroll
  for (int offset = kRowThreads / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

}  // namespace delta_net_rows

// All threads of a chunk come here. Those of rows that do not exist compute with whatever lies
// there, because the other half of their warp may need them to sum, and leave nothing behind.
template <bool kWhole, class Row>
__device__ __forceinline__ void prepare_row(const DeltaPlace& at, int row, int part, Row& it) {
  using namespace delta_net_rows;
  float4 q[kRowQuads], k[kRowQuads];
  float qq = 0, kk = 0, kq = 0;
#pragma unroll
  for (int i = 0; i < kRowQuads; ++i) {
    const int first = (i * kRowThreads + part) * kQuad;
    q[i] = *reinterpret_cast<const float4*>(it.q + first);
    k[i] = *reinterpret_cast<const float4*>(it.k + first);
    qq = dot(q[i], q[i], qq);
    kk = dot(k[i], k[i], kk);
    kq = dot(k[i], q[i], kq);
  }
  // The first thread has fetched the gates, the others compute with none: without a branch the long
  // way through exp and log is gone while sums are under way.
  const DeltaGates raw = part == 0 ? it.gates : DeltaGates{};
  const float alpha = expf(-at.rate * softplus(raw.alpha + at.dt_bias));
  const float beta = sigmoid(raw.beta);
  qq = row_sum(qq);
  kk = row_sum(kk);
  kq = row_sum(kq);
  if (row >= at.span.rows) return;

  const float q_factor = at.p.query_scale / sqrtf(qq + 1e-6f);
  const float k_factor = 1.0f / sqrtf(kk + 1e-6f);
#pragma unroll
  for (int i = 0; i < kRowQuads; ++i) {
    const int first = (i * kRowThreads + part) * kQuad;
    k[i] = times(k[i], k_factor);
    *reinterpret_cast<float4*>(it.q + first) = times(q[i], q_factor);
    *reinterpret_cast<float4*>(it.k + first) = k[i];
  }
  if (part == 0) it.gates = {alpha, beta, kq * k_factor * q_factor};

  const int side = at.span.record_side;
  if (at.records_decays() && part == 0) *at.recorded_decay(side, row) = alpha;
  if (at.records_keys()) {
#pragma unroll
    for (int i = 0; i < kRowQuads; ++i)
      store_quad<kWhole>(at.recorded_key(side, row), (i * kRowThreads + part) * kQuad, at.p.key_dim,
                         k[i]);
  }
}

}  // namespace slip
