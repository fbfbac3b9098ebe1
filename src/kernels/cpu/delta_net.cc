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

}  // namespace

DeltaRule::DeltaRule(const DeltaNetArgs& args, const Loops& loops) : args_(args), loops_(loops) {
  check_shapes(args);
  value_heads_ = args.state.shape[1];
  key_dim_ = args.state.shape[2];
  value_dim_ = args.state.shape[3];
  key_size_ = args.key_heads * key_dim_;
  value_size_ = value_heads_ * value_dim_;
  repeat_ = value_heads_ / args.key_heads;
  strips_ = (value_dim_ + kDeltaColumns - 1) / kDeltaColumns;
  check(key_dim_ <= kMaxKeyDim, "delta_net: key_dim ", key_dim_);
}

void DeltaRule::prepare_keys(const Rows& rows, int64_t key_head, const Scratch& scratch) const {
  const int64_t channels = args_.qkv.shape[1];
  const float query_scale = 1.0f / std::sqrt(float(key_dim_));
  for (int64_t r = 0; r < rows.count; ++r) {
    const float* query = args_.qkv.f32() + (rows.first() + r) * channels + key_head * key_dim_;
    float* q = scratch.q + r * key_dim_;
    float* k = scratch.k + r * key_dim_;
    loops_.l2_normalize(query, key_dim_, query_scale, q);
    loops_.l2_normalize(query + key_size_, key_dim_, 1.0f, k);
    scratch.key_query[r] = loops_.inner_product(k, q, key_dim_);
  }
}

void DeltaRule::prepare_gates(const Rows& rows, int64_t head, const Scratch& scratch) const {
  for (int64_t r = 0; r < rows.count; ++r) {
    const int64_t gate = (rows.first() + r) * value_heads_ + head;
    scratch.beta[r] = 1.0f / (1.0f + std::exp(-args_.b.f32()[gate]));
    scratch.alpha[r] = std::exp(-args_.rate.f32()[head] *
                                softplus(args_.a.f32()[gate] + args_.dt_bias.f32()[head]));
  }
}

DeltaUpdates DeltaRule::replay(const Span& span, int64_t head, int64_t column) const {
  if (span.replay == 0) return {};
  const RecordedRow recorded = recorded_row(args_, span, 1 - span.record_side, 0, head);
  return {.rows = span.replay,
          .k = recorded.key,
          .k_stride = key_size_,
          .delta = recorded.delta + column,
          .delta_stride = value_size_,
          .alpha = recorded.decay,
          .alpha_stride = value_heads_};
}

float* DeltaRule::record(const Rows& rows, int64_t head, int64_t strip,
                         const Scratch& scratch) const {
  if (!rows.span.record || rows.count == 0) return nullptr;
  const RecordedRow record =
      recorded_row(args_, rows.span, rows.span.record_side, rows.begin, head);
  // Strips share decays, and value heads keys; the first of them writes.
  for (int64_t r = 0; r < rows.count && strip == 0; ++r) {
    record.decay[r * value_heads_] = scratch.alpha[r];
    if (head % repeat_ == 0)
      std::copy_n(scratch.k + r * key_dim_, key_dim_, record.key + r * key_size_);
  }
  return record.delta + strip * kDeltaColumns;
}

float* DeltaRule::state(const Span& span, int64_t head, int64_t strip) const {
  return args_.state.f32() + (span.state_slot * value_heads_ + head) * key_dim_ * value_dim_ +
         strip * kDeltaColumns;
}

float* DeltaRule::next_state(const Span& span, const Part& part, int64_t head,
                             int64_t strip) const {
  if (strip + 1 < part.first_strip + part.strips) return state(span, head, strip + 1);
  if (head + 1 < part.first_head + part.heads) return state(span, head + 1, part.first_strip);
  return nullptr;
}

void DeltaRule::run_rows(const Rows& rows, int64_t head, int64_t strip, float* next_state,
                         const Scratch& scratch) const {
  const int64_t channels = args_.qkv.shape[1];
  const int64_t column = strip * kDeltaColumns;
  loops_.delta_columns(
      {.state = state(rows.span, head, strip),
       .state_stride = value_dim_,
       .next_state = next_state,
       .key_dim = key_dim_,
       .columns = std::min(kDeltaColumns, value_dim_ - column),
       .replay = replay(rows.span, head, column),
       .work = scratch.work,
       .from_work = rows.begin > 0,
       .to_work = rows.begin + rows.count < rows.span.rows,
       .rows = rows.count,
       .q = scratch.q,
       .k = scratch.k,
       .v = args_.qkv.f32() + rows.first() * channels + 2 * key_size_ + head * value_dim_ + column,
       .v_stride = channels,
       .alpha = scratch.alpha,
       .beta = scratch.beta,
       .key_query = scratch.key_query,
       .delta = record(rows, head, strip, scratch),
       .delta_stride = value_size_,
       .out = args_.out.f32() + (rows.first() * value_heads_ + head) * value_dim_ + column,
       .out_stride = value_size_});
}

void DeltaRule::run(const Span& span, const Part& part, float* memory) const {
  const Scratch scratch(memory, key_dim_);
  const int64_t key_head = part.first_head / repeat_;
  // A strip goes through all rows before the next one begins, so that its state stays near.
  const bool prepared_once = span.rows <= kDeltaRows;
  if (prepared_once) prepare_keys(next_rows(span, 0), key_head, scratch);
  for (int64_t head = part.first_head; head < part.first_head + part.heads; ++head) {
    if (prepared_once) prepare_gates(next_rows(span, 0), head, scratch);
    for (int64_t strip = part.first_strip; strip < part.first_strip + part.strips; ++strip) {
      int64_t begin = 0;
      do {  // at least once: a span without rows may have some to replay
        const Rows rows = next_rows(span, begin);
        if (!prepared_once) {
          prepare_keys(rows, key_head, scratch);
          prepare_gates(rows, head, scratch);
        }
        run_rows(rows, head, strip, next_state(span, part, head, strip), scratch);
        begin += rows.count;
      } while (begin < span.rows);
    }
  }
}

void CpuOps::delta_net(const DeltaNetArgs& args) {
  const DeltaRule rule(args, loops_);
  const auto heads = int64_t(args.spans.size()) * rule.value_heads();
  const int64_t item_strips = heads >= kManyHeads * pool_.threads() ? rule.strips() : 1;
  const int64_t items_per_head = rule.strips() / item_strips;
  const int64_t items_per_span = rule.value_heads() * items_per_head;
  pool_.run(int64_t(args.spans.size()) * items_per_span, [&](int64_t item, int thread) {
    const int64_t in_span = item % items_per_span;
    rule.run(args.spans[size_t(item / items_per_span)],
             {.first_head = in_span / items_per_head,
              .heads = 1,
              .first_strip = in_span % items_per_head * item_strips,
              .strips = item_strips},
             thread_scratch(thread).data());
  });
}

}  // namespace slip
