// The gated delta rule, token by token, with the state in registers.
//
// A block has 32 columns of one head's state, a warp eight of them, a lane four columns of eight
// keys. Rows come in chunks of eight through shared memory: while one chunk is worked on, the next
// two are on their way. Within a chunk warps go their own ways: sums over keys stay in a warp.
//
// Every step of every sequence goes through here, rows of a draft and rows of a long prompt alike,
// so that each row has the same bits whatever it is computed with.
#include <cmath>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/delta_net_rows.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kWarpColumns = kDeltaStrip / (kDeltaThreads / kWarp);
constexpr int kGroups = kWarp / (kWarpColumns / kQuad);  // of lanes that have the same columns
constexpr int kLaneKeys = kDeltaKeys / kGroups;
static_assert(kWarpColumns == 8 && kGroups == 16 && kLaneKeys == 8, "as sum_over_keys() has it");
constexpr int kChunksInFlight = 3;

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
      const float4 x = kWhole ? *reinterpret_cast<const float4*>(from + column)
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

__device__ __forceinline__ void replay(const DeltaRow& row, LaneState& state) {
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

  __device__ __forceinline__ void load(const DeltaRow& row) {
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

// Where this lane's results of the span's first row go; null if nowhere.
__device__ __forceinline__ float* result_place(const DeltaPlace& at) {
  const int column = at.column + summed_column();
  if ((lane() & 2) != 0 || column >= at.p.value_dim) return nullptr;
  if (lane() >= 16) return at.out(0) + column;
  return at.span.record ? at.recorded_delta(at.span.record_side, 0) + column : nullptr;
}

// All rows of a chunk. Each is read from shared memory while the one before it is summed.
__device__ __forceinline__ void advance_rows(const DeltaRow* rows, int count, LaneState& state,
                                             float* results, int64_t stride) {
  LaneRow next;
  next.load(rows[0]);
#pragma unroll 2
  for (int row = 0; row < count; ++row) {
    const LaneRow current = next;
    next.load(rows[min(row + 1, kChunkRows - 1)]);
    const float result = advance(current, state);
    if (results) results[row * stride] = result;
  }
}

// kWhole: heads of 128 keys and a multiple of 32 columns, everything aligned.
template <bool kWhole>
__global__ void __launch_bounds__(kDeltaThreads) delta_net_kernel(DeltaNetParams p) {
  __shared__ DeltaRow rows[kChunksInFlight][kChunkRows];
  const DeltaPlace at(p);
  const DeviceSpan& span = at.span;
  const int thread = int(threadIdx.x);
  if constexpr (kWhole)  // a line of the state per thread
    prefetch_line(at.state() + thread * p.value_dim + at.column);
  let_next_begin();
  wait_for_inputs();

  // First what is replayed, then the rows.
  const int replay_chunks = (span.replay + kChunkRows - 1) / kChunkRows;
  const int chunks = replay_chunks + (span.rows + kChunkRows - 1) / kChunkRows;
  const int row_of_chunk = thread / kRowThreads, part = thread % kRowThreads;
  const auto fetch = [&](int chunk) {
    DeltaRow& to = rows[chunk % kChunksInFlight][row_of_chunk];
    const bool replays = chunk < replay_chunks;
    const int row = (replays ? chunk : chunk - replay_chunks) * kChunkRows + row_of_chunk;
    if (replays && row < span.replay) fetch_recorded<kWhole>(at, row, part, to);
    if (!replays && row < span.rows) fetch_row<kWhole>(at, row, part, to);
    __pipeline_commit();
  };

#pragma unroll 1
  for (int chunk = 0; chunk < kChunksInFlight - 1; ++chunk) fetch(chunk);
  float* results = result_place(at);
  const int64_t stride = int64_t(p.value_heads) * p.value_dim;  // from row to row of them
  LaneState state;
  state.load<kWhole>(at);

  // Rows that may be rejected leave the state as it is before them.
  const int lasting_chunks = span.record ? replay_chunks : chunks;
  for (int chunk = 0;; ++chunk) {
    if (chunk == lasting_chunks && chunk > 0) state.store<kWhole>(at);
    if (chunk == chunks) break;

    DeltaRow* current = rows[chunk % kChunksInFlight];
    const bool replays = chunk < replay_chunks;
    const int first_row = (replays ? chunk : chunk - replay_chunks) * kChunkRows;
    const int count = min(kChunkRows, (replays ? span.replay : span.rows) - first_row);
    __pipeline_wait_prior(kChunksInFlight - 2);
    if (!replays) prepare_row<kWhole>(at, first_row + row_of_chunk, part, current[row_of_chunk]);
    __syncthreads();  // the chunk is ready, and nobody needs the one before
    fetch(chunk + kChunksInFlight - 1);
    if (replays) {
      for (int row = 0; row < count; ++row) replay(current[row], state);
    } else {
      advance_rows(current, count, state, results, stride);
      if (results) results += kChunkRows * stride;
    }
  }
}

}  // namespace

void CudaOps::delta_net(const DeltaNetArgs& args) {
  check_shapes(args);
  const int64_t value_heads = args.state.shape[1];
  const int64_t key_dim = args.state.shape[2], value_dim = args.state.shape[3];
  check(key_dim <= kDeltaKeys, "delta_net: key_dim ", key_dim);
  if (args.spans.empty()) return;
  const bool records = !args.record.keys.empty();
  const DeltaNetParams params{.qkv = args.qkv.f32(),
                              .a = args.a.f32(),
                              .b = args.b.f32(),
                              .rate = args.rate.f32(),
                              .dt_bias = args.dt_bias.f32(),
                              .state = args.state.f32(),
                              .record_keys = args.record.keys.f32(),
                              .record_deltas = args.record.deltas.f32(),
                              .record_decays = args.record.decays.f32(),
                              .out = args.out.f32(),
                              .spans = spans_on_device(args.spans),
                              .key_heads = int32_t(args.key_heads),
                              .value_heads = int32_t(value_heads),
                              .key_dim = int32_t(key_dim),
                              .value_dim = int32_t(value_dim),
                              .record_rows = records ? int32_t(args.record.keys.shape[1]) : 0,
                              .query_scale = 1.0f / std::sqrt(float(key_dim))};
  const bool whole = key_dim == kDeltaKeys && value_dim % kDeltaStrip == 0 &&
                     rows_of_quads(value_dim, {params.qkv, params.state, params.record_keys,
                                               params.record_deltas});
  const dim3 grid(unsigned((value_dim + kDeltaStrip - 1) / kDeltaStrip), unsigned(value_heads),
                  unsigned(args.spans.size()));
  launch(launcher_, grid, kDeltaThreads, 0,
         whole ? delta_net_kernel<true> : delta_net_kernel<false>, params);
}

}  // namespace slip
