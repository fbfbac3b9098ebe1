// A delta-net layer behind its projections. Its parts one after the other would be four regions or
// five, each shared in a way of its own, and queries, keys and values would go from one processor's
// cache to another's and back.
#include "kernels/cpu/causal_conv.h"
#include "kernels/cpu/cpu_ops_impl.h"
#include "kernels/cpu/delta_net.h"
#include "kernels/cpu/norm.h"

namespace slip {
namespace {

// A key head of one span, the value heads that read it, and their channels: up to the output
// projection it needs nothing of the others.
class HeadGroups {
 public:
  // Checks the shapes of all but the projection.
  HeadGroups(const GatedDeltaNetArgs& args, const Loops& loops)
      : convolution_(args.convolution()),
        norm_(args.norm()),
        rule_(args.delta_rule(), loops),
        loops_(loops),
        key_heads_(args.key_heads),
        repeat_(rule_.value_heads() / args.key_heads),
        key_dim_(args.state.shape[2]),
        value_dim_(args.state.shape[3]) {
    check_shapes(convolution_);
    check_shapes(norm_);
  }

  // All rows of the span, on the calling thread, up to the norm.
  void run(const Span& span, int64_t key_head, float* scratch) const {
    convolve(span, key_head);
    const int64_t first = key_head * repeat_;
    rule_.run(span,
              {.first_head = first, .heads = repeat_, .first_strip = 0, .strips = rule_.strips()},
              scratch);
    for (int64_t row = span.first_row; row < span.first_row + span.rows; ++row)
      for (int64_t head = first; head < first + repeat_; ++head)
        gated_norm_head(norm_, row, head, loops_);
  }

  // Its part of a row that was normed.
  int64_t first_value(int64_t key_head) const { return key_head * values(); }
  int64_t values() const { return repeat_ * value_dim_; }

 private:
  void convolve(const Span& span, int64_t key_head) const {
    const int64_t key_size = key_heads_ * key_dim_;
    const int64_t key = key_head * key_dim_;
    convolve_channels(convolution_, span, key, key_dim_, loops_);
    convolve_channels(convolution_, span, key_size + key, key_dim_, loops_);
    convolve_channels(convolution_, span, 2 * key_size + first_value(key_head), values(), loops_);
  }

  CausalConvArgs convolution_;
  GatedRmsNormArgs norm_;
  DeltaRule rule_;
  const Loops& loops_;
  int64_t key_heads_, repeat_, key_dim_, value_dim_;
};

// Rows of a span up to which a group is short. Longer ones must be many: the threads then help each
// other, as they do with the smaller items of the parts.
constexpr int64_t kFewRows = 4;
constexpr int64_t kManyGroups = 4;  // per thread

// Whether every row is in a span that is no prompt (of many rows, queries and keys would be
// prepared again for every strip), and threads have about as much to do.
bool suits_head_groups(const GatedDeltaNetArgs& args, int threads) {
  const int64_t groups = int64_t(args.spans.size()) * args.key_heads;
  const bool can_help = threads == 1 || groups >= kManyGroups * threads;
  int64_t rows = 0;
  for (const Span& span : args.spans) {
    if (span.rows > (can_help ? kDeltaRows : kFewRows)) return false;
    rows += span.rows;
  }
  const int64_t largest_share = (groups + threads - 1) / threads;
  return rows == args.qkv.shape[0] && largest_share * threads - groups <= groups / 4;
}

}  // namespace

void CpuOps::gated_delta_net(const GatedDeltaNetArgs& args) {
  if (!suits_head_groups(args, pool_.threads())) return Ops::gated_delta_net(args);
  const HeadGroups groups(args, loops_);
  const LinearArgs projection = args.projection();
  check_shapes(projection);
  const int64_t rows = projection.x.shape[0], in = projection.x.shape[1];
  inputs_.set(projection.x.f32(), rows, in, in);
  // A group rounds what it has of a row where it is made, if it has whole groups of scales.
  const bool rounds = inputs_.begin_parts(projection.weight.info, groups.values(), loops_);

  pool_.run(int64_t(args.spans.size()) * args.key_heads, [&](int64_t item, int thread) {
    const Span& span = args.spans[size_t(item / args.key_heads)];
    const int64_t key_head = item % args.key_heads;
    groups.run(span, key_head, thread_scratch(thread).data());
    for (int64_t row = span.first_row; rounds && row < span.first_row + span.rows; ++row)
      inputs_.prepare_part(row, groups.first_value(key_head), groups.values(), loops_);
  });

  if (!rounds) inputs_.prepare(projection.weight.info, loops_, pool_);
  const LinearJob job{&projection.weight, projection.out.f32(), projection.out.shape[1], true};
  run_linear_jobs({&job, 1}, inputs_, rows);
}

}  // namespace slip
