#include <algorithm>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/quads.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kThreads = 128;  // channels of a block
constexpr int kRowsPerBlock = 16;
constexpr int kRowsAtOnce = 4;  // read before any of them is written
constexpr int kMostWidth = 4;

struct ConvParams {
  const float* x;
  const float* weight;
  float* tail;
  float* out;
  const DeviceSpan* spans;
  int64_t channels;
  int64_t tail_rows;
};

// A thread has one channel of some rows of a span. Only the first rows of a span look back into the
// tail, so the thread that has them may change it, too. Spans that record are short: one thread has
// all of their rows.
template <int kWidth>
__global__ void __launch_bounds__(kThreads) causal_conv_kernel(ConvParams p) {
  constexpr int kHistory = kWidth - 1;
  static_assert(kHistory <= kRowsPerBlock);
  const int64_t channel = int64_t(blockIdx.x) * kThreads + threadIdx.x, channels = p.channels;
  const bool exists = channel < channels;
  const DeviceSpan span = p.spans[blockIdx.z];
  const int first = int(blockIdx.y) * kRowsPerBlock;
  const int end = span.record ? span.rows : min(first + kRowsPerBlock, span.rows);
  const bool has_tail = first == 0;

  const float* x = p.x + span.first_row * channels + channel;
  float* out = p.out + span.first_row * channels + channel;
  float* tail = p.tail + span.state_slot * p.tail_rows * channels + channel;
  float weight[kWidth];
  for (int m = 0; m < kWidth; ++m) weight[m] = exists ? p.weight[m * channels + channel] : 0.0f;
  if (exists && has_tail)
    for (int m = 0; m < kHistory; ++m) prefetch_line(tail + (span.replay + m) * channels);
  let_next_begin();
  wait_for_inputs();
  if (!exists || (!has_tail && (span.record || first >= span.rows))) return;

  float recent[kWidth];  // the last kHistory inputs, oldest first, and room for the current one
  for (int m = 0; m < kHistory; ++m)
    recent[m] =
        has_tail ? tail[(span.replay + m) * channels] : x[(first - kHistory + m) * channels];
  if (span.record)
    for (int m = 0; m < kHistory; ++m) tail[m * channels] = recent[m];

  for (int begin = first; begin < end; begin += kRowsAtOnce) {
    float inputs[kRowsAtOnce];
    for (int i = 0; i < kRowsAtOnce; ++i)
      inputs[i] = begin + i < end ? x[(begin + i) * channels] : 0.0f;
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int row = begin + i;
      if (row >= end) break;
      recent[kHistory] = inputs[i];
      float sum = 0;
      for (int m = 0; m < kWidth; ++m) sum = fmaf(recent[m], weight[m], sum);
      out[row * channels] = silu(sum);
      if (span.record) tail[(kHistory + row) * channels] = inputs[i];
      for (int m = 0; m < kHistory; ++m) recent[m] = recent[m + 1];
    }
  }

  if (has_tail && !span.record)
    for (int m = 0; m < kHistory; ++m)
      tail[m * channels] = end == span.rows ? recent[m] : x[(span.rows - kHistory + m) * channels];
}

}  // namespace

void CudaOps::causal_conv(const CausalConvArgs& args) {
  check_shapes(args);
  const int64_t channels = args.x.shape[1], width = args.weight.shape[0];
  check(width >= 1 && width <= kMostWidth, "causal_conv: width ", width);
  if (args.spans.empty()) return;
  int64_t longest = 1;  // a span without rows may have some to replay
  for (const Span& span : args.spans) longest = std::max(longest, span.rows);
  const dim3 grid(unsigned((channels + kThreads - 1) / kThreads),
                  unsigned((longest + kRowsPerBlock - 1) / kRowsPerBlock),
                  unsigned(args.spans.size()));
  constexpr void (*kKernels[kMostWidth])(ConvParams) = {
      causal_conv_kernel<1>, causal_conv_kernel<2>, causal_conv_kernel<3>, causal_conv_kernel<4>};
  launch(launcher_, grid, kThreads, 0, kKernels[width - 1],
         ConvParams{args.x.f32(), args.weight.f32(), args.tail.f32(), args.out.f32(),
                    spans_on_device(args.spans), channels, args.tail.shape[1]});
}

}  // namespace slip
