#include "kernels/cpu/causal_conv.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {
namespace {

constexpr int64_t kMaxWidth = 64;
constexpr int64_t kChannelsPerItem = 256;

}  // namespace

void convolve_channels(const CausalConvArgs& args, const Span& span, int64_t first, int64_t count,
                       const Loops& loops) {
  const int64_t channels = args.x.shape[1];
  const int64_t width = args.weight.shape[0];
  const int64_t history = width - 1;
  check(width <= kMaxWidth, "causal_conv: width ", width);

  float* tail = args.tail.f32() + span.state_slot * args.tail.shape[1] * channels + first;
  const float* x = args.x.f32() + span.first_row * channels + first;
  // Input `position` of the span; negative ones are in the tail, behind those replayed.
  const auto input = [&](int64_t position) {
    return position < 0 ? tail + (span.replay + history + position) * channels
                        : x + position * channels;
  };
  for (int64_t row = 0; row < span.rows; ++row) {
    const float* inputs[kMaxWidth];
    for (int64_t w = 0; w < width; ++w) inputs[w] = input(row - history + w);
    loops.conv_silu(inputs, args.weight.f32() + first, channels, width, count,
                    args.out.f32() + (span.first_row + row) * channels + first);
  }
  // What the next step may need: all inputs when rows may be rejected, else the last ones. Oldest
  // first: each is copied from a later place, so nothing is overwritten too early.
  const int64_t oldest = span.record ? -history : span.rows - history;
  for (int64_t position = oldest; position < span.rows; ++position) {
    float* kept = tail + (position - oldest) * channels;
    if (kept != input(position)) std::memmove(kept, input(position), size_t(count) * sizeof(float));
  }
}

void CpuOps::causal_conv(const CausalConvArgs& args) {
  check_shapes(args);
  const int64_t channels = args.x.shape[1];
  const int64_t parts = (channels + kChannelsPerItem - 1) / kChannelsPerItem;
  const auto items = int64_t(args.spans.size()) * parts;
  for_rows(items, args.x.shape[0] * channels * 4, [&](int64_t item) {
    const int64_t first = item % parts * kChannelsPerItem;
    convolve_channels(args, args.spans[size_t(item / parts)], first,
                      std::min(kChannelsPerItem, channels - first), loops_);
  });
}

}  // namespace slip
