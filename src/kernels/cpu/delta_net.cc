#include "kernels/cpu/delta_net.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_ops_impl.h"
#include "kernels/delta_record.h"

namespace slip {
namespace {

// With so many heads per thread no thread waits for long, and a head need not be divided.
constexpr int64_t kManyHeads = 16;

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

// A few rows as the inner loop wants them, and room for it to work in.
struct DeltaScratch {
  float* work;       // [kDeltaColumns * key_dim]; first, because vectors are read from it
  float* q;          // [kDeltaRows, key_dim]
  float* k;          // [kDeltaRows, key_dim]
  float* alpha;      // [kDeltaRows]
  float* beta;       // [kDeltaRows]
  float* key_query;  // [kDeltaRows]

  DeltaScratch(float* memory, int64_t key_dim)
      : work(memory),
        q(work + kDeltaColumns * key_dim),
        k(q + kDeltaRows * key_dim),
        alpha(k + kDeltaRows * key_dim),
        beta(alpha + kDeltaRows),
        key_query(beta + kDeltaRows) {}
};

}  // namespace

void CpuOps::delta_net(const DeltaNetArgs& args) {
  check_shapes(args);
  const int64_t value_heads = args.state.shape[1];
  const int64_t key_dim = args.state.shape[2], value_dim = args.state.shape[3];
  const int64_t key_size = args.key_heads * key_dim, value_size = value_heads * value_dim;
  const int64_t channels = args.qkv.shape[1];
  const int64_t repeat = value_heads / args.key_heads;
  check(key_dim <= kMaxKeyDim, "delta_net: key_dim ", key_dim);
  const int64_t strips = (value_dim + kDeltaColumns - 1) / kDeltaColumns;
  const float query_scale = 1.0f / std::sqrt(float(key_dim));

  const auto prepare = [&](int64_t first_row, int64_t rows, int64_t head, DeltaScratch& scratch) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* qkv = args.qkv.f32() + (first_row + r) * channels;
      const int64_t key_offset = head / repeat * key_dim;
      loops_.l2_normalize(qkv + key_offset, key_dim, query_scale, scratch.q + r * key_dim);
      loops_.l2_normalize(qkv + key_size + key_offset, key_dim, 1.0f, scratch.k + r * key_dim);
      scratch.key_query[r] =
          loops_.inner_product(scratch.k + r * key_dim, scratch.q + r * key_dim, key_dim);
      const int64_t gate = (first_row + r) * value_heads + head;
      scratch.beta[r] = 1.0f / (1.0f + std::exp(-args.b.f32()[gate]));
      scratch.alpha[r] = std::exp(-args.rate.f32()[head] *
                                  softplus(args.a.f32()[gate] + args.dt_bias.f32()[head]));
    }
  };

  const auto replay = [&](const Span& span, int64_t head, int64_t column) -> DeltaUpdates {
    if (span.replay == 0) return {};
    const RecordedRow recorded = recorded_row(args, span, 1 - span.record_side, 0, head);
    return {.rows = span.replay,
            .k = recorded.key,
            .k_stride = key_size,
            .delta = recorded.delta + column,
            .delta_stride = value_size,
            .alpha = recorded.decay,
            .alpha_stride = value_heads};
  };

  const auto run = [&](const Span& span, int64_t head, int64_t strip, DeltaScratch scratch,
                       bool prepared) {
    const int64_t column = strip * kDeltaColumns;
    int64_t begin = 0;
    do {  // at least once: a span without rows may have some to replay
      const int64_t rows = std::min(kDeltaRows, span.rows - begin);
      const int64_t first_row = span.first_row + begin;
      if (!prepared) prepare(first_row, rows, head, scratch);

      float* deltas = nullptr;
      if (span.record && rows > 0) {
        const RecordedRow record = recorded_row(args, span, span.record_side, begin, head);
        deltas = record.delta + column;
        // Strips share decays, and value heads keys; the first of them writes.
        for (int64_t r = 0; r < rows && strip == 0; ++r) {
          record.decay[r * value_heads] = scratch.alpha[r];
          if (head % repeat == 0)
            std::copy_n(scratch.k + r * key_dim, key_dim, record.key + r * key_size);
        }
      }

      loops_.delta_columns(
          {.state = args.state.f32() +
                    (span.state_slot * value_heads + head) * key_dim * value_dim + column,
           .state_stride = value_dim,
           .key_dim = key_dim,
           .columns = std::min(kDeltaColumns, value_dim - column),
           .replay = replay(span, head, column),
           .work = scratch.work,
           .from_work = begin > 0,
           .to_work = begin + rows < span.rows,
           .rows = rows,
           .q = scratch.q,
           .k = scratch.k,
           .v = args.qkv.f32() + first_row * channels + 2 * key_size + head * value_dim + column,
           .v_stride = channels,
           .alpha = scratch.alpha,
           .beta = scratch.beta,
           .key_query = scratch.key_query,
           .delta = deltas,
           .delta_stride = value_size,
           .out = args.out.f32() + (first_row * value_heads + head) * value_dim + column,
           .out_stride = value_size});
      begin += rows;
    } while (begin < span.rows);
  };

  const auto heads = int64_t(args.spans.size()) * value_heads;
  const int64_t item_strips = heads >= kManyHeads * pool_.threads() ? strips : 1;
  const int64_t items_per_span = value_heads * strips / item_strips;
  pool_.run(int64_t(args.spans.size()) * items_per_span, [&](int64_t item, int thread) {
    const Span& span = args.spans[size_t(item / items_per_span)];
    const int64_t first = item % items_per_span * item_strips;
    for (int64_t strip = first; strip < first + item_strips; ++strip)
      run(span, strip / strips, strip % strips, {thread_scratch(thread).data(), key_dim},
          strip > first && span.rows <= kDeltaRows);
  });
}

}  // namespace slip
