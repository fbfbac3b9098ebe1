// The gated delta rule, token by token, with the state in registers.
//
// A block has 32 columns of one head's state. Rows come in chunks of eight through shared memory:
// while one chunk is worked on, the next two are on their way. Within a chunk warps go their own
// ways.
//
// Every step of every sequence goes through here or through delta_mixer.cu, which does the same
// sums, so that each row has the same bits whatever it is computed with.
#include <cmath>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/delta_net.h"
#include "kernels/cuda/delta_net_state.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

using namespace delta_net;

constexpr int kStrip = 32;  // columns of a block
constexpr int kThreads = kStrip / kWarpColumns * kWarp;
static_assert(kThreads == kChunkThreads);
constexpr int kChunksInFlight = 3;

// Where this lane's results of the span's first row go; null if nowhere.
__device__ __forceinline__ float* result_place(const DeltaPlace& at) {
  const int column = at.column + summed_column();
  if ((lane() & 2) != 0 || column >= at.p.value_dim) return nullptr;
  if (lane() >= 16) return at.out(0) + column;
  return at.span.record ? at.recorded_delta(at.span.record_side, 0) + column : nullptr;
}

// kWhole: heads of 128 keys and a multiple of 32 columns, everything aligned.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads) delta_net_kernel(DeltaNetParams p) {
  __shared__ DeltaRow<kStrip> rows[kChunksInFlight][kChunkRows];
  const DeltaPlace at(p, int(blockIdx.z), int(blockIdx.y), int(blockIdx.x) * kStrip);
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
    DeltaRow<kStrip>& to = rows[chunk % kChunksInFlight][row_of_chunk];
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

    DeltaRow<kStrip>* current = rows[chunk % kChunksInFlight];
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

DeltaNetParams delta_net_params(const DeltaNetArgs& args, const DeviceSpan* spans) {
  const int64_t key_dim = args.state.shape[2];
  const bool records = !args.record.keys.empty();
  return {.qkv = args.qkv.f32(),
          .a = args.a.f32(),
          .b = args.b.f32(),
          .rate = args.rate.f32(),
          .dt_bias = args.dt_bias.f32(),
          .state = args.state.f32(),
          .record_keys = args.record.keys.f32(),
          .record_deltas = args.record.deltas.f32(),
          .record_decays = args.record.decays.f32(),
          .out = args.out.f32(),
          .spans = spans,
          .key_heads = int32_t(args.key_heads),
          .value_heads = int32_t(args.state.shape[1]),
          .key_dim = int32_t(key_dim),
          .value_dim = int32_t(args.state.shape[3]),
          .record_rows = records ? int32_t(args.record.keys.shape[1]) : 0,
          .query_scale = 1.0f / std::sqrt(float(key_dim))};
}

void CudaOps::delta_net(const DeltaNetArgs& args) {
  check_shapes(args);
  check(args.state.shape[2] <= kDeltaKeys, "delta_net: key_dim ", args.state.shape[2]);
  if (args.spans.empty()) return;
  const DeltaNetParams params = delta_net_params(args, spans_on_device(args.spans));
  const int64_t value_dim = params.value_dim;
  const bool whole = params.key_dim == kDeltaKeys && value_dim % kStrip == 0 &&
                     rows_of_quads(value_dim, {params.qkv, params.state, params.record_keys,
                                               params.record_deltas});
  const dim3 grid(unsigned((value_dim + kStrip - 1) / kStrip), unsigned(params.value_heads),
                  unsigned(args.spans.size()));
  launch(launcher_, grid, kThreads, 0, whole ? delta_net_kernel<true> : delta_net_kernel<false>,
         params);
}

}  // namespace slip
