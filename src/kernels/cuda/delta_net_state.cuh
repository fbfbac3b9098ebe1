// The state of the delta rule in registers, and what a token does to it.
//
// A warp has eight columns of one head's state, a lane four columns of eight keys; sums over keys
// stay in a warp.
#pragma once

#include "kernels/cuda/delta_net_rows.cuh"

namespace slip::delta_net {

inline constexpr int kWarpColumns = 8;
inline constexpr int kGroups = kWarp / (kWarpColumns / kQuad);  // of lanes with the same columns
inline constexpr int kLaneKeys = kDeltaKeys / kGroups;
static_assert(kGroups == 16 && kLaneKeys == 8, "as sum_over_keys() has it");

__device__ __forceinline__ int lane() { return int(threadIdx.x) % kWarp; }

// The first of the lane's columns, counted from the block's.
__device__ __forceinline__ int lane_column() {
  return int(threadIdx.x) / kWarp * kWarpColumns + lane() % 2 * kQuad;
}

// The lane's keys, j < kLaneKeys: in fours, so that they are read from shared memory as such.
__device__ __forceinline__ int lane_key(int j) {
  return j / kQuad * (kGroups * kQuad) + lane() / 2 * kQuad + j % kQuad;
}

__device__ __forceinline__ void load_keys(const float* vector, float (&x)[kLaneKeys]) {
#pragma unroll
  for (int j = 0; j < kLaneKeys; j += kQuad) {
    const float4 quad = *reinterpret_cast<const float4*>(vector + lane_key(j));
    x[j] = quad.x, x[j + 1] = quad.y, x[j + 2] = quad.z, x[j + 3] = quad.w;
  }
}

// A lane's part of the state.
struct LaneState {
  float s[kLaneKeys][kQuad];

  template <bool kWhole>
  __device__ __forceinline__ void load(const DeltaPlace& at) {
    const float* state = at.state();
    const int column = at.column + lane_column();
#pragma unroll
    for (int j = 0; j < kLaneKeys; ++j) {
      const int key = lane_key(j);
      const float* from = state + key * at.p.value_dim;
      const int columns = key < at.p.key_dim ? at.p.value_dim : 0;
      // From the second-level cache: nobody reads it twice, and the first one may be out of date.
      const float4 x = kWhole ? __ldcg(reinterpret_cast<const float4*>(from + column))
                              : load_quad<false>(from, column, columns);
      s[j][0] = x.x, s[j][1] = x.y, s[j][2] = x.z, s[j][3] = x.w;
    }
  }

  template <bool kWhole>
  __device__ __forceinline__ void store(const DeltaPlace& at) const {
    float* state = at.state();
    const int column = at.column + lane_column();
#pragma unroll
    for (int j = 0; j < kLaneKeys; ++j) {
      const int key = lane_key(j);
      float* to = state + key * at.p.value_dim;
      const float4 x = make_float4(s[j][0], s[j][1], s[j][2], s[j][3]);
      if constexpr (kWhole)
        *reinterpret_cast<float4*>(to + column) = x;
      else
        store_quad<false>(to, column, key < at.p.key_dim ? at.p.value_dim : 0, x);
    }
  }

  // S <- alpha S + k d^T. Rows and their replay both go through here, so that they agree bit for
  // bit; written so that no compiler can choose between roundings.
  __device__ __forceinline__ void update(float alpha, const float (&k)[kLaneKeys],
                                         const float (&d)[kQuad]) {
#pragma unroll
    for (int j = 0; j < kLaneKeys; ++j)
#pragma unroll
      for (int c = 0; c < kQuad; ++c) s[j][c] = fmaf(k[j], d[c], __fmul_rn(alpha, s[j][c]));
  }
};

template <class Row>
__device__ __forceinline__ void replay(const Row& row, LaneState& state) {
  float k[kLaneKeys];
  load_keys(row.k, k);
  const float4 d = *reinterpret_cast<const float4*>(row.v + lane_column());
  state.update(row.gates.alpha, k, {d.x, d.y, d.z, d.w});
}

// Sums each of eight values over the 16 lanes that have the same columns. Every exchange leaves a
// lane half of the values; lane l ends with the sum of value l / 4.
__device__ __forceinline__ float sum_over_keys(float (&x)[2 * kQuad]) {
#pragma unroll
  for (int kept = kQuad; kept > 0; kept /= 2) {
    const int other = 4 * kept;
    const bool upper = (lane() & other) != 0;
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      const float given = upper ? x[i] : x[i + kept];
      const float own = upper ? x[i + kept] : x[i];
      x[i] = own + __shfl_xor_sync(~0u, given, other);
    }
  }
  return x[0] + __shfl_xor_sync(~0u, x[0], 2);
}

// Once summed, a lane has one of its columns: below 16 the sum for the key, from 16 on that for the
// query. Lanes that differ in bit 1 have the same.
__device__ __forceinline__ int summed_column() { return lane_column() + lane() / 4 % kQuad; }

// What a lane reads of a row.
struct LaneRow {
  float k[kLaneKeys], q[kLaneKeys];
  float v;
  DeltaGates gates;

  template <class Row>
  __device__ __forceinline__ void load(const Row& row) {
    load_keys(row.k, k);
    load_keys(row.q, q);
    v = row.v[summed_column()];
    gates = row.gates;
  }
};

// One token. Its output needs no pass of its own over the new state:
// (alpha S + k d^T)^T q = alpha S^T q + (k q) d. Returns the output, or, in lanes below 16, d.
__device__ __forceinline__ float advance(const LaneRow& row, LaneState& state) {
  float sums[2 * kQuad] = {};  // S^T k, S^T q
#pragma unroll
  for (int j = 0; j < kLaneKeys; ++j) {
#pragma unroll
    for (int c = 0; c < kQuad; ++c) {
      sums[c] = fmaf(state.s[j][c], row.k[j], sums[c]);
      sums[kQuad + c] = fmaf(state.s[j][c], row.q[j], sums[kQuad + c]);
    }
  }
  const float decayed = __fmul_rn(row.gates.alpha, sum_over_keys(sums));
  const float delta_of_key = row.gates.beta * (row.v - decayed);
  float deltas[kQuad];  // of the lane's columns of the state
#pragma unroll
  for (int c = 0; c < kQuad; ++c) deltas[c] = __shfl_sync(~0u, delta_of_key, 4 * c + lane() % 2);
  const float delta = __shfl_sync(~0u, delta_of_key, lane() % 16);
  state.update(row.gates.alpha, row.k, deltas);
  return lane() < 16 ? delta : fmaf(row.gates.key_query, delta, decayed);
}

// All rows of a chunk, at most kMost. Each is read from shared memory while the one before it is
// summed. Results of advance() go to `results`, if there is such a place, `stride` apart.
template <int kMost = kChunkRows, class Row>
__device__ __forceinline__ void advance_rows(const Row* rows, int count, LaneState& state,
                                             float* results, int64_t stride) {
  LaneRow next;
  next.load(rows[0]);
  if constexpr (kMost == 1) {
    if (count == 0) return;
    const float result = advance(next, state);
    if (results) *results = result;
  } else {
#pragma unroll 2
    for (int row = 0; row < count; ++row) {
      const LaneRow current = next;
      next.load(rows[min(row + 1, kChunkRows - 1)]);
      const float result = advance(current, state);
      if (results) results[row * stride] = result;
    }
  }
}

}  // namespace slip::delta_net
