#include "kernels/cpu/delta_net.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {
namespace {

constexpr int64_t kColumnsPerItem = 64;

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

}  // namespace

void CpuOps::delta_net(const DeltaNetArgs& args) {
  check_shapes(args);
  const int64_t value_heads = args.state.shape[1];
  const int64_t key_dim = args.state.shape[2], value_dim = args.state.shape[3];
  const int64_t key_size = args.key_heads * key_dim;
  const int64_t channels = args.qkv.shape[1];
  const int64_t repeat = value_heads / args.key_heads;
  check(key_dim <= kMaxKeyDim, "delta_net: key_dim ", key_dim);
  const int64_t strips = (value_dim + kColumnsPerItem - 1) / kColumnsPerItem;

  const auto run = [&](const Span& span, int64_t head, int64_t strip, float* scratch) {
    const int64_t column = strip * kColumnsPerItem;
    float* q = scratch;
    float* k = q + kDeltaRows * key_dim;
    float* alpha = k + kDeltaRows * key_dim;
    float* beta = alpha + kDeltaRows;
    const float query_scale = 1.0f / std::sqrt(float(key_dim));
    for (int64_t begin = 0; begin < span.rows; begin += kDeltaRows) {
      const int64_t rows = std::min(kDeltaRows, span.rows - begin);
      const int64_t first_row = span.first_row + begin;
      for (int64_t r = 0; r < rows; ++r) {
        const float* qkv = args.qkv.f32() + (first_row + r) * channels;
        const int64_t key_offset = head / repeat * key_dim;
        loops_.l2_normalize(qkv + key_offset, key_dim, query_scale, q + r * key_dim);
        loops_.l2_normalize(qkv + key_size + key_offset, key_dim, 1.0f, k + r * key_dim);
        const int64_t gate = (first_row + r) * value_heads + head;
        beta[r] = 1.0f / (1.0f + std::exp(-args.b.f32()[gate]));
        alpha[r] = std::exp(-args.rate.f32()[head] *
                            softplus(args.a.f32()[gate] + args.dt_bias.f32()[head]));
      }
      const int64_t state_index = (span.state_slot * value_heads + head) * key_dim * value_dim;
      loops_.delta_columns(
          {.state = args.state.f32() + state_index + column,
           .state_stride = value_dim,
           .key_dim = key_dim,
           .columns = std::min(kColumnsPerItem, value_dim - column),
           .rows = rows,
           .q = q,
           .k = k,
           .v = args.qkv.f32() + first_row * channels + 2 * key_size + head * value_dim + column,
           .v_stride = channels,
           .alpha = alpha,
           .beta = beta,
           .out = args.out.f32() + (first_row * value_heads + head) * value_dim + column,
           .out_stride = value_heads * value_dim});
    }
  };

  const int64_t items_per_span = value_heads * strips;
  pool_.run(int64_t(args.spans.size()) * items_per_span, [&](int64_t item, int thread) {
    const int64_t part = item % items_per_span;
    run(args.spans[size_t(item / items_per_span)], part / strips, part % strips,
        thread_scratch(thread).data());
  });
}

}  // namespace slip
