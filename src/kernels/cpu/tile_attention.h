// A tile of queries that walks over the pages of its sequence, segment by segment.
#pragma once

#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/kv_codes.h"

namespace slip {

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

  Sums from(int64_t query, int64_t head_dim) const {
    return {maximum + query, denominator + query, out + query * head_dim};
  }
};

constexpr int64_t sums_values(int64_t queries, int64_t head_dim) {
  return queries * (head_dim + 2);
}
inline Sums sums_at(float* memory, int64_t queries) {
  return {memory, memory + queries, memory + 2 * queries};
}

// What a thread needs for a tile, besides its sums.
struct TileScratch {
  float* q;          // [kMaxQueries, head_dim]: scaled, and rotated if keys are
  int16_t* q_codes;  // [kMaxQueries, head_dim]: the same, rounded
  float* q_scales;   // [kMaxQueries]
  CodedScratch codes;

  static int64_t values(int64_t head_dim);
  static TileScratch at(float* memory, int64_t head_dim);
};

class TileAttention {
 public:
  TileAttention(const AttentionArgs& args, const Loops& loops);

  int64_t kv_heads() const { return kv_heads_; }
  int64_t head_dim() const { return head_dim_; }
  int64_t group() const { return group_; }
  int64_t queries(const QueryTile& tile) const { return tile.rows * group_; }
  // Segments [first_segment, segments) hold positions that the tile's rows see.
  int64_t first_segment(const QueryTile& tile) const;
  int64_t segments(const QueryTile& tile) const;

  // Writes sums over positions [segment * kSegmentLen, ...).
  void run_segment(const QueryTile& tile, int64_t segment, const TileScratch& scratch,
                   const Sums& sums) const;

  // total += part, as one softmax. Queries that saw nothing of the segment stay as they are.
  void merge(const Sums& part, int64_t count, const Sums& total) const;

  // Divides, turns back what is rotated, and writes the tile's part of the output.
  void finish(const QueryTile& tile, const Sums& total) const;

 private:
  const float* query(const QueryTile& tile, int64_t i) const;
  // The first position that the row at `position` sees.
  int64_t first_seen(int64_t position) const {
    return args_.window > 0 ? std::max<int64_t>(0, position + 1 - args_.window) : 0;
  }
  UncodedRows uncoded_rows(KvSide side, const QueryTile& tile, int64_t position) const;
  void prepare_queries(const QueryTile& tile, const TileScratch& scratch, const Sums& sums) const;
  // Queries [begin, end) of a tile, over a slice of a page as it is or over a coded page.
  struct Queries {
    int64_t begin, end;
  };
  void attend_slice(const QueryTile& tile, const Queries& queries, int64_t position, int64_t slice,
                    const TileScratch& scratch, const Sums& sums) const;
  void attend_codes(const QueryTile& tile, const Queries& queries, int64_t position,
                    const TileScratch& scratch, const Sums& sums) const;

  const AttentionArgs& args_;
  const Loops& loops_;
  CodedSide keys_, values_;  // coded recipes only
  bool coded_;
  float stored_factor_;  // of what is read to what is meant
  int64_t q_heads_, head_dim_, kv_heads_, page_len_, group_;
};

}  // namespace slip
