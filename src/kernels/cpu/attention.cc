#include "kernels/cpu/attention.h"

#include <algorithm>

#include "kernels/cpu/cpu_ops_impl.h"
#include "kernels/cpu/tile_attention.h"

namespace slip {
namespace {

// Plain keys are read again for every two queries, from the first-level cache if a tile is small.
// Codes are unpacked once for all queries of a tile.
int64_t rows_per_tile(const KvRecipe& recipe, int64_t group) {
  const int64_t queries = recipe.coded() ? kMaxQueries : 8;
  return std::clamp<int64_t>(queries / group, 1, kMaxPageSlice);
}

}  // namespace

int64_t attention_scratch_values(const StepLimits& limits) {
  return TileScratch::values(limits.head_dim) + 2 * sums_values(kMaxQueries, limits.head_dim);
}

int64_t attention_partial_values(const StepLimits& limits) {
  const int64_t segments = (limits.context + kSegmentLen - 1) / kSegmentLen + 1;
  return segments *
         sums_values(std::min(kSplitRows, limits.rows) * limits.q_heads, limits.head_dim);
}

void CpuOps::attention(const AttentionArgs& args) {
  const TileAttention attend(args, loops_);
  const auto length = [](const Span& span) { return span.start + span.rows; };
  int64_t all = 0;
  for (const Span& span : args.spans) all += length(span);
  // A thread's share: what is longer keeps the others waiting unless they help.
  const int64_t share = std::max(kSegmentLen, all / pool_.threads());
  const bool alone = args.spans.size() == 1;
  const auto few = [&](const Span& span) {
    return span.rows <= kSplitRows && span.rows * attend.group() <= kMaxQueries;
  };
  const auto split = [&](const Span& span) { return few(span) && (alone || length(span) > share); };
  for (const Span& span : args.spans)
    if (span.rows > 0 && split(span)) attend_split(attend, span);
  const int64_t usual = rows_per_tile(args.kv.recipe, attend.group());
  attend_tiles(attend, args.spans, [&](const Span& span) {
    if (split(span)) return int64_t{0};
    return few(span) ? span.rows : usual;
  });
}

void CpuOps::attend_split(const TileAttention& attend, const Span& span) {
  const QueryTile whole{&span, 0, span.rows, 0};
  const int64_t first_segment = attend.first_segment(whole);
  const int64_t segments = attend.segments(whole) - first_segment;
  const int64_t queries = attend.queries(whole);
  const int64_t part_values = sums_values(queries, attend.head_dim());
  auto* partials = reinterpret_cast<float*>(partials_.data());
  check(size_t(attend.kv_heads() * segments * part_values) * sizeof(float) <= partials_.size(),
        "attention: context ", span.start + span.rows, " exceeds what was reserved");
  const auto part = [&](int64_t kv_head, int64_t segment) {
    return sums_at(partials + (kv_head * segments + segment) * part_values, queries);
  };
  pool_.run(attend.kv_heads() * segments, [&](int64_t item, int thread) {
    const int64_t kv_head = item / segments, segment = item % segments;
    attend.run_segment({&span, 0, span.rows, kv_head}, first_segment + segment,
                       TileScratch::at(thread_scratch(thread).data(), attend.head_dim()),
                       part(kv_head, segment));
  });
  for_rows(attend.kv_heads() * span.rows, attend.kv_heads() * segments * part_values,
           [&](int64_t item) {
             const int64_t kv_head = item / span.rows, row = item % span.rows;
             const auto row_part = [&](int64_t segment) {
               return part(kv_head, segment).from(row * attend.group(), attend.head_dim());
             };
             for (int64_t segment = 1; segment < segments; ++segment)
               attend.merge(row_part(segment), attend.group(), row_part(0));
             attend.finish({&span, row, 1, kv_head}, row_part(0));
           });
}

void CpuOps::attend_tiles(const TileAttention& attend, std::span<const Span> spans,
                          FunctionRef<int64_t(const Span&)> tile_rows) {
  const int64_t kv_heads = attend.kv_heads(), head_dim = attend.head_dim();
  const auto tiles_of = [&](const Span& span) {
    const int64_t rows = tile_rows(span);
    return rows > 0 ? (span.rows + rows - 1) / rows : 0;
  };
  int64_t tiles = 0;
  for (const Span& span : spans) tiles += tiles_of(span);
  if (tiles == 0) return;
  pool_.run(kv_heads * tiles, [&](int64_t item, int thread) {
    const Span* span = spans.data();
    int64_t behind = item / kv_heads;
    for (; behind >= tiles_of(*span); ++span) behind -= tiles_of(*span);
    // The last rows have the longest context; starting with them balances the threads.
    const int64_t rows = tile_rows(*span), first = (tiles_of(*span) - 1 - behind) * rows;
    const QueryTile tile{span, first, std::min(rows, span->rows - first), item % kv_heads};
    const int64_t queries = attend.queries(tile);
    float* memory = thread_scratch(thread).data();
    const TileScratch scratch = TileScratch::at(memory, head_dim);
    float* sums = memory + TileScratch::values(head_dim);
    const Sums total = sums_at(sums, queries);
    const Sums next = sums_at(sums + sums_values(queries, head_dim), queries);
    const int64_t first_segment = attend.first_segment(tile);
    attend.run_segment(tile, first_segment, scratch, total);
    for (int64_t segment = first_segment + 1; segment < attend.segments(tile); ++segment) {
      attend.run_segment(tile, segment, scratch, next);
      attend.merge(next, queries, total);
    }
    attend.finish(tile, total);
  });
}

}  // namespace slip
