#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {
namespace {

// Rows of one span whose queries for one kv head are computed together.
struct QueryTile {
  const Span* span;
  int64_t first;  // row within the span
  int64_t rows;
  int64_t kv_head;
};

// Running results of the queries of a tile, over one segment or over all.
struct Sums {
  float* maximum;      // [queries]
  float* denominator;  // [queries]
  float* out;          // [queries, head_dim], not divided
};

int64_t sums_values(int64_t queries, int64_t head_dim) { return queries * (head_dim + 2); }

Sums sums_at(float* memory, int64_t queries) {
  return {memory, memory + queries, memory + 2 * queries};
}

class TileAttention {
 public:
  TileAttention(const AttentionArgs& args, const Loops& loops)
      : args_(args),
        loops_(loops),
        q_heads_(args.q.shape[1]),
        head_dim_(args.q.shape[2]),
        kv_heads_(args.kv.keys.shape[1]),
        page_len_(args.kv.keys.shape[2]),
        group_(q_heads_ / kv_heads_) {}

  int64_t queries(const QueryTile& tile) const { return tile.rows * group_; }
  int64_t head_dim() const { return head_dim_; }
  int64_t group() const { return group_; }
  int64_t segments(const QueryTile& tile) const {
    return (tile.span->start + tile.first + tile.rows + kSegmentLen - 1) / kSegmentLen;
  }

  // Writes sums over positions [segment * kSegmentLen, ...); `scaled` holds queries * head_dim.
  void run_segment(const QueryTile& tile, int64_t segment, float* scaled, const Sums& sums) const {
    const int64_t count = queries(tile);
    const float* q[kMaxQueries];
    float* out[kMaxQueries];
    for (int64_t i = 0; i < count; ++i) {
      const float* from = query(tile, i);
      float* to = scaled + i * head_dim_;
      for (int64_t d = 0; d < head_dim_; ++d) to[d] = from[d] * args_.scale;
      q[i] = to;
      out[i] = sums.out + i * head_dim_;
      sums.maximum[i] = -INFINITY;
      sums.denominator[i] = 0;
    }
    std::memset(sums.out, 0, size_t(count * head_dim_) * sizeof(float));

    const int64_t last = tile.span->start + tile.first + tile.rows;  // one past the last position
    const int64_t end = std::min((segment + 1) * kSegmentLen, last);
    int64_t slice = 0;
    for (int64_t begin = segment * kSegmentLen; begin < end; begin += slice) {
      slice = std::min({page_len_ - begin % page_len_, end - begin, kMaxPageSlice});
      int64_t visible[kMaxQueries];
      for (int64_t i = 0; i < count; ++i) {
        const int64_t position = tile.span->start + tile.first + i / group_;
        visible[i] = std::clamp<int64_t>(position + 1 - begin, 0, slice);
      }
      // Rows are in order, so those that do not reach this page come first.
      int64_t hidden = 0;
      while (visible[hidden] == 0) ++hidden;
      loops_.attention_page({.keys = page(args_.kv.keys, tile, begin),
                             .values = page(args_.kv.values, tile, begin),
                             .bf16 = args_.kv.keys.dtype == DType::bf16,
                             .head_dim = head_dim_,
                             .queries = count - hidden,
                             .q = q + hidden,
                             .positions = visible + hidden,
                             .maximum = sums.maximum + hidden,
                             .denominator = sums.denominator + hidden,
                             .out = out + hidden});
    }
  }

  // total += part, as one softmax. Queries that saw nothing of the segment stay as they are.
  void merge(const Sums& part, int64_t count, const Sums& total) const {
    for (int64_t i = 0; i < count; ++i) {
      if (part.denominator[i] == 0) continue;
      const float maximum = std::max(total.maximum[i], part.maximum[i]);
      const float keep = std::exp(total.maximum[i] - maximum);
      const float take = std::exp(part.maximum[i] - maximum);
      total.maximum[i] = maximum;
      total.denominator[i] = total.denominator[i] * keep + part.denominator[i] * take;
      float* out = total.out + i * head_dim_;
      for (int64_t d = 0; d < head_dim_; ++d)
        out[d] = out[d] * keep + part.out[i * head_dim_ + d] * take;
    }
  }

  void finish(const QueryTile& tile, const Sums& total) const {
    for (int64_t i = 0; i < queries(tile); ++i) {
      float* out = args_.out.f32() + (query(tile, i) - args_.q.f32());
      const float inverse = 1.0f / total.denominator[i];
      for (int64_t d = 0; d < head_dim_; ++d) out[d] = total.out[i * head_dim_ + d] * inverse;
    }
  }

 private:
  // Query i of a tile: row i / group, head i % group of those that share the kv head.
  const float* query(const QueryTile& tile, int64_t i) const {
    const int64_t row = tile.span->first_row + tile.first + i / group_;
    return args_.q.f32() + (row * q_heads_ + tile.kv_head * group_ + i % group_) * head_dim_;
  }

  const void* page(const View& pages, const QueryTile& tile, int64_t position) const {
    const int64_t index = tile.span->pages[size_t(position / page_len_)];
    const int64_t values =
        ((index * kv_heads_ + tile.kv_head) * page_len_ + position % page_len_) * head_dim_;
    return pages.data + size_t(values) * bytes_per_value(pages.dtype);
  }

  const AttentionArgs& args_;
  const Loops& loops_;
  int64_t q_heads_, head_dim_, kv_heads_, page_len_, group_;
};

int64_t rows_per_tile(int64_t group) { return std::clamp<int64_t>(8 / group, 1, 8); }

}  // namespace

int64_t attention_scratch_values(const StepLimits& limits) {
  return 2 * kMaxQueries * limits.head_dim + 2 * sums_values(kMaxQueries, limits.head_dim);
}

int64_t attention_partial_values(const StepLimits& limits) {
  const int64_t segments = (limits.context + kSegmentLen - 1) / kSegmentLen + 1;
  return segments *
         sums_values(std::min(kSplitRows, limits.rows) * limits.q_heads, limits.head_dim);
}

void CpuOps::attention(const AttentionArgs& args) {
  check_shapes(args);
  const TileAttention attend(args, loops_);
  const int64_t kv_heads = args.kv.keys.shape[1];

  for (const Span& span : args.spans) {
    if (span.rows == 0) continue;
    if (span.rows <= kSplitRows && span.rows * attend.group() <= kMaxQueries) {
      // Few rows: threads share kv heads and segments; merging is quick.
      const QueryTile whole{&span, 0, span.rows, 0};
      const int64_t segments = attend.segments(whole), queries = attend.queries(whole);
      const int64_t part_values = sums_values(queries, attend.head_dim());
      auto* partials = reinterpret_cast<float*>(partials_.data());
      check(size_t(kv_heads * segments * part_values) * sizeof(float) <= partials_.size(),
            "attention: context ", span.start + span.rows, " exceeds what was reserved");
      const auto part = [&](int64_t kv_head, int64_t segment) {
        return sums_at(partials + (kv_head * segments + segment) * part_values, queries);
      };
      pool_.run(kv_heads * segments, [&](int64_t item, int thread) {
        const int64_t kv_head = item / segments, segment = item % segments;
        attend.run_segment({&span, 0, span.rows, kv_head}, segment, thread_scratch(thread).data(),
                           part(kv_head, segment));
      });
      for (int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
        for (int64_t segment = 1; segment < segments; ++segment)
          attend.merge(part(kv_head, segment), queries, part(kv_head, 0));
        attend.finish({&span, 0, span.rows, kv_head}, part(kv_head, 0));
      }
      continue;
    }
    const int64_t tile_rows = rows_per_tile(attend.group());
    const int64_t tiles = (span.rows + tile_rows - 1) / tile_rows;
    pool_.run(kv_heads * tiles, [&](int64_t item, int thread) {
      // The last rows have the longest context; starting with them balances the threads.
      const int64_t first = (tiles - 1 - item / kv_heads) * tile_rows;
      const QueryTile tile{&span, first, std::min(tile_rows, span.rows - first), item % kv_heads};
      const int64_t queries = attend.queries(tile);
      float* scaled = thread_scratch(thread).data();
      float* memory = scaled + kMaxQueries * attend.head_dim();
      const Sums total = sums_at(memory, queries);
      const Sums next = sums_at(memory + sums_values(queries, attend.head_dim()), queries);
      attend.run_segment(tile, 0, scaled, total);
      for (int64_t segment = 1; segment < attend.segments(tile); ++segment) {
        attend.run_segment(tile, segment, scaled, next);
        attend.merge(next, queries, total);
      }
      attend.finish(tile, total);
    });
  }
}

}  // namespace slip
