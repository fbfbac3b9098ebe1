// A delta-net layer behind its projections, in steps of few rows: convolution, delta rule, gated
// norm and rounding for the output projection by one kernel, where each would wait for a launch and
// for memory of its own.
//
// A block has one head of one sequence. Its bits are those of causal_conv.cu, delta_net.cu and
// norm.cu one after the other, which longer steps go through.
#include <algorithm>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/delta_net.h"
#include "kernels/cuda/delta_net_state.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

using namespace delta_net;

constexpr int kHead = kDeltaKeys;  // keys, and values, of a head
static_assert(kHead == kSlabIn, "a head is a slab of what the projection takes");
constexpr int kThreads = kHead / kWarpColumns * kWarp;
constexpr int kMostRows = kChunkRows;  // of a sequence
constexpr int kWidth = 4;              // of the convolution
constexpr int kHistory = kWidth - 1;
using Row = DeltaRow<kHead>;

struct MixerParams {
  DeltaNetParams delta;  // its qkv is what is to be convolved
  const float* conv;
  float* tail;
  const float* z;
  const float* norm_scale;
  std::byte* rounded;  // for the projection; null: it goes to delta.out as it is
  uint32_t* counters;  // of blocks that have read a key head's tail, all zero
  int64_t channels, tail_rows;
  int32_t rows;  // of the step
  float eps;
  bool follows_itself;  // the last call had the same states
};

// One channel of queries, keys or values, by the thread that has it.
template <int kRows>
class Channel {
 public:
  __device__ Channel(const MixerParams& p, const DeltaPlace& at)
      : p_(p), span_(at.span), part_(int(threadIdx.x) / kHead) {
    const int head = part_ == 0   ? at.key_head
                     : part_ == 1 ? p.delta.key_heads + at.key_head
                                  : 2 * p.delta.key_heads + at.head;
    channel_ = head * kHead + int(threadIdx.x) % kHead;
    if (!exists()) return;
#pragma unroll
    for (int m = 0; m < kWidth; ++m) weight_[m] = p.conv[m * p.channels + channel_];
#pragma unroll
    for (int m = 0; m < kHistory; ++m) inputs_[m] = __ldcg(tail(span_.replay + m));
  }

  // Asks for the step's inputs.
  __device__ __forceinline__ void ask() {
    if (!exists()) return;
    const float* x = p_.delta.qkv + span_.first_row * p_.channels + channel_;
#pragma unroll
    for (int row = 0; row < kRows; ++row)
      if (row < span_.rows) inputs_[kHistory + row] = x[row * p_.channels];
  }

  __device__ __forceinline__ void convolve(Row* rows) const {
    if (!exists()) return;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (row >= span_.rows) break;
      float sum = 0;
#pragma unroll
      for (int m = 0; m < kWidth; ++m) sum = fmaf(inputs_[row + m], weight_[m], sum);
      float* to = part_ == 0 ? rows[row].q : part_ == 1 ? rows[row].k : rows[row].v;
      to[threadIdx.x % kHead] = silu(sum);
    }
  }

  // What the next step looks back to. Heads share queries and keys: only one of their blocks may
  // write, and only when all have read.
  __device__ bool is_shared() const { return part_ < 2; }
  __device__ __forceinline__ void leave_tail() const {
    if (!exists()) return;
#pragma unroll
    for (int i = 0; i < kHistory + kRows; ++i) {
      if (i >= kHistory + span_.rows) break;
      // Rows that may be rejected come behind what is before them.
      const int place = span_.record ? i : i - span_.rows;
      if (place >= 0) *tail(place) = inputs_[i];
    }
  }

 private:
  __device__ bool exists() const { return part_ < 3; }
  __device__ float* tail(int row) const {
    return p_.tail + (span_.state_slot * p_.tail_rows + row) * p_.channels + channel_;
  }

  const MixerParams& p_;
  const DeviceSpan& span_;
  int part_;  // queries, keys, values
  int64_t channel_;
  float weight_[kWidth];
  float inputs_[kHistory + kRows];  // oldest first
};

// Brings the state up to the last row that was accepted.
__device__ __forceinline__ void replay_recorded(const DeltaPlace& at, Row* rows, LaneState& state) {
  const int thread = int(threadIdx.x), row = thread / kRowThreads;
#pragma unroll 1
  for (int first = 0; first < at.span.replay; first += kChunkRows) {
    const int count = min(kChunkRows, at.span.replay - first);
    if (row < count) fetch_recorded<true>(at, first + row, thread % kRowThreads, rows[row]);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < count; ++i) replay(rows[i], state);
    __syncthreads();
  }
}

// Spans have at most kRows rows: what a step of one row runs through should be little code.
template <int kRows>
__global__ void __launch_bounds__(kThreads, 1)
    delta_mixer_kernel(const __grid_constant__ MixerParams p) {
  __shared__ Row rows[kMostRows];
  __shared__ __align__(sizeof(float4)) float outputs[kRows][kHead];
  __shared__ bool reads_last;
  const int thread = int(threadIdx.x), warp = thread / kWarp;
  const DeltaPlace at(p.delta, int(blockIdx.y), int(blockIdx.x), 0);
  const DeviceSpan& span = at.span;
  // The state and the channels' tails were written by the last step, unless a layer is called again
  // and again: there is no need to wait for the kernel in front.
  if (p.follows_itself) wait_for_inputs();
  Channel<kRows> channel(p, at);
  LaneState state;
  state.load<true>(at);
  const int64_t lane_value = int64_t(lane()) * kQuad;
  const float4 scale = load_quad<true>(p.norm_scale, lane_value, kHead);
  if (span.replay > 0) {  // what the last step recorded
    replay_recorded(at, rows, state);
    if (span.record) state.store<true>(at);
  }
  wait_for_inputs();
  let_next_begin();

  channel.ask();
  if (thread < span.rows)
    rows[thread].gates = {p.delta.a[at.gate(thread)], p.delta.b[at.gate(thread)], 0};
  float4 z{};
  if (warp < span.rows) z = load_quad<true>(p.z + at.gate(warp) * kHead, lane_value, kHead);

  channel.convolve(rows);
  __syncthreads();
  uint32_t& counter = p.counters[blockIdx.y * p.delta.key_heads + at.key_head];
  if (thread == kThreads - 1) {
    const auto sharing = uint32_t(p.delta.value_heads / p.delta.key_heads);
    reads_last = atomicAdd(&counter, 1u) == sharing - 1;
    if (reads_last) counter = 0;  // for the next launch
  }
  if (thread < kChunkThreads)
    prepare_row<true>(at, thread / kRowThreads, thread % kRowThreads, rows[thread / kRowThreads]);
  __syncthreads();

  // Lanes with sums for queries have outputs, those with sums for keys what a replay needs.
  float* results = &outputs[0][summed_column()];
  int64_t stride = kHead;
  if (lane() < 16) {
    results = span.record ? at.recorded_delta(span.record_side, 0) + summed_column() : nullptr;
    stride = int64_t(p.delta.value_heads) * kHead;
  }
  if ((lane() & 2) != 0) results = nullptr;
  advance_rows<kRows>(rows, span.rows, state, results, stride);
  if (!span.record) state.store<true>(at);
  __syncthreads();

  if (warp < span.rows) {
    const float4 x = load_quad<true>(outputs[warp], lane_value, kHead);
    const float inverse = inverse_rms(warp_sum(add_squares(0, x)), kHead, p.eps);
    const float4 normed = gated(scaled(x, inverse, scale), z);
    if (p.rounded) {
      const gemv::RoundedRows to = gemv::rounded_rows(p.rounded, p.rows, p.delta.value_heads);
      to.round<true>(normed, span.first_row + warp, at.head);
    } else {
      store_quad<true>(at.out(warp), lane_value, kHead, normed);
    }
  }
  if (!channel.is_shared() || reads_last) channel.leave_tail();
}

bool suits(const GatedDeltaNetArgs& args, const DeltaNetParams& delta) {
  const bool shape = delta.key_dim == kHead && delta.value_dim == kHead &&
                     args.conv.shape[0] == kWidth && args.qkv.shape[0] <= kFewRows;
  return shape &&
         rows_of_quads(kHead, {delta.qkv, delta.state, delta.record_keys, delta.record_deltas,
                               delta.out, args.z.data, args.norm_scale.data}) &&
         std::all_of(args.spans.begin(), args.spans.end(),
                     [](const Span& span) { return span.rows <= kMostRows; });
}

}  // namespace

void CudaOps::gated_delta_net(const GatedDeltaNetArgs& args) {
  DeltaNetArgs rule = args.delta_rule();
  check_shapes(args.convolution());
  check_shapes(rule);
  check_shapes(args.norm());
  const LinearArgs projection = args.projection();
  check_shapes(projection);
  rule.qkv = args.qkv;
  const int64_t rows = args.qkv.shape[0];
  if (rows == 0 || args.spans.empty()) return Ops::gated_delta_net(args);
  MixerParams params{.delta = delta_net_params(rule, spans_on_device(args.spans)),
                     .conv = args.conv.f32(),
                     .tail = args.tail.f32(),
                     .z = args.z.f32(),
                     .norm_scale = args.norm_scale.f32(),
                     .rounded = nullptr,
                     .counters = counters(),
                     .channels = args.qkv.shape[1],
                     .tail_rows = args.tail.shape[1],
                     .rows = int32_t(rows),
                     .eps = args.eps,
                     .follows_itself = last_delta_states_ == args.state.data};
  last_delta_states_ = args.state.data;
  if (!suits(args, params.delta) || int64_t(args.spans.size()) * args.key_heads > kCounters)
    return Ops::gated_delta_net(args);

  const LinearJobs slabs = LinearJobs::of_slabs(device_weight(args.weight), args.out.f32());
  LinearInput input{.x = params.delta.out, .rows = rows, .in = args.weight.info.in, .quads = true};
  const bool rounds = linear_takes_rounded(launcher_, input, slabs) == RowForm::integers;
  if (rounds) input.rounded = params.rounded = linear_scratch(input, slabs);
  const auto kernel =
      std::ranges::all_of(args.spans, [](const Span& span) { return span.rows <= 1; })
          ? delta_mixer_kernel<1>
          : delta_mixer_kernel<kMostRows>;
  prefer_cache(kernel);  // a block reads 64 KB of state at once
  launch(launcher_, dim3(unsigned(params.delta.value_heads), unsigned(args.spans.size())), kThreads,
         0, kernel, params);
  if (rounds)
    linear_few_rows(launcher_, input, {}, slabs, {}, true);
  else
    linear(projection);
}

}  // namespace slip
