#include "kernels/cpu/tile_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/dims.h"
#include "kernels/kv_index.h"

namespace slip {
namespace {

StoredKv stored_kv(DType dtype) {
  switch (dtype) {
    case DType::f32: return StoredKv::f32;
    case DType::bf16: return StoredKv::bf16;
    case DType::fp8_e4m3: return StoredKv::fp8;
    default: unreachable("type of keys and values");
  }
}

// Parts of a thread's scratch, each of whole vectors.
class ScratchDivider {
 public:
  explicit ScratchDivider(float* memory) : memory_(memory) {}
  template <class T>
  T* take(int64_t count) {
    T* part = memory_ ? reinterpret_cast<T*>(memory_ + used_) : nullptr;
    const int64_t values = (count * int64_t(sizeof(T)) + 3) / int64_t(sizeof(float));
    used_ += (values + kLanes - 1) / kLanes * kLanes;
    return part;
  }
  int64_t used() const { return used_; }

 private:
  float* memory_;
  int64_t used_ = 0;
};

TileScratch divide(ScratchDivider& parts, int64_t head_dim) {
  const int64_t values = kMaxQueries * head_dim, weights = kMaxQueries * kMaxPageSlice;
  return {.q = parts.take<float>(values),
          .q_codes = parts.take<int16_t>(values),
          .q_scales = parts.take<float>(kMaxQueries),
          .codes = {.levels = parts.take<int16_t>(std::max(head_dim, kMaxPageSlice) * 2 * kLanes),
                    .scores = parts.take<float>(weights),
                    .weights = parts.take<int16_t>(weights),
                    .weight_scales = parts.take<float>(kMaxQueries),
                    .rescale = parts.take<float>(kMaxQueries)}};
}

}  // namespace

int64_t TileScratch::values(int64_t head_dim) {
  ScratchDivider parts(nullptr);
  divide(parts, head_dim);
  return parts.used();
}

TileScratch TileScratch::at(float* memory, int64_t head_dim) {
  ScratchDivider parts(memory);
  return divide(parts, head_dim);
}

TileAttention::TileAttention(const AttentionArgs& args, const Loops& loops)
    : args_(args), loops_(loops), coded_(args.kv.recipe.coded()) {
  const Dims dims = check_shapes(args);
  q_heads_ = dims["q_heads"];
  head_dim_ = dims["head_dim"];
  kv_heads_ = dims["kv_heads"];
  page_len_ = dims["page_len"];
  group_ = q_heads_ / kv_heads_;
  check(group_ <= kMaxQueries, "attention: ", group_, " heads share keys, at most ", kMaxQueries);
  stored_factor_ = args.kv.keys.dtype == DType::fp8_e4m3 ? kStoredFp8Factor : 1.0f;
  if (!coded_) return;
  keys_ = coded_key_side(args);
  values_ = coded_value_side(args);
  check_codable(keys_);
}

int64_t TileAttention::first_segment(const QueryTile& tile) const {
  return first_seen(tile.span->start + tile.first) / kSegmentLen;
}

int64_t TileAttention::segments(const QueryTile& tile) const {
  return (tile.span->start + tile.first + tile.rows + kSegmentLen - 1) / kSegmentLen;
}

// Query i of a tile: row i / group, head i % group of those that share the kv head.
const float* TileAttention::query(const QueryTile& tile, int64_t i) const {
  const int64_t row = tile.span->first_row + tile.first + i / group_;
  return args_.q.f32() + (row * q_heads_ + tile.kv_head * group_ + i % group_) * head_dim_;
}

void TileAttention::prepare_queries(const QueryTile& tile, const TileScratch& scratch,
                                    const Sums& sums) const {
  const int64_t count = queries(tile);
  const float scale = args_.scale * stored_factor_;
  for (int64_t i = 0; i < count; ++i) {
    const float* from = query(tile, i);
    float* to = scratch.q + i * head_dim_;
    for (int64_t d = 0; d < head_dim_; ++d) to[d] = from[d] * scale;
    if (coded_) {
      loops_.turbo_rotate(turbo_signs(KvSide::keys).data(), head_dim_, to);
      scratch.q_scales[i] = loops_.round_query(to, head_dim_, scratch.q_codes + i * head_dim_);
    }
    sums.maximum[i] = -INFINITY;
    sums.denominator[i] = 0;
  }
  std::memset(sums.out, 0, size_t(count * head_dim_) * sizeof(float));
}

void TileAttention::run_segment(const QueryTile& tile, int64_t segment, const TileScratch& scratch,
                                const Sums& sums) const {
  prepare_queries(tile, scratch, sums);
  const int64_t first = tile.span->start + tile.first;  // position of the tile's first row
  const int64_t end = std::min((segment + 1) * kSegmentLen, first + tile.rows);
  int64_t slice = 0;
  // Whole pages, so that all rows sum their positions in the same parts.
  const int64_t seen = first_seen(first);
  int64_t begin = std::max(segment * kSegmentLen, seen - seen % page_len_);
  for (; begin < end; begin += slice) {
    const int64_t page_end = begin - begin % page_len_ + page_len_;
    slice = std::min({page_end - begin, end - begin, kMaxPageSlice});
    // Rows are in order: first those that do not reach this slice, last those that have left the
    // page behind: they read its codes, or it has left their window.
    const auto rows_before = [&](int64_t position) {
      return std::clamp<int64_t>(position - first, 0, tile.rows) * group_;
    };
    const int64_t hidden = rows_before(begin);
    int64_t near = queries(tile);
    if (coded_) near = rows_before(args_.k.empty() ? page_end - 1 : page_end);
    if (args_.window > 0) near = rows_before(begin + slice + args_.window - 1);
    if (hidden < near) attend_slice(tile, {hidden, near}, begin, slice, scratch, sums);
    if (coded_ && near < queries(tile))
      attend_codes(tile, {near, queries(tile)}, begin, scratch, sums);
  }
}

void TileAttention::attend_slice(const QueryTile& tile, const Queries& queries, int64_t position,
                                 int64_t slice, const TileScratch& scratch,
                                 const Sums& sums) const {
  const float* q[kMaxQueries];
  float* out[kMaxQueries];
  int64_t visible[kMaxQueries], hidden[kMaxQueries];
  const int64_t count = queries.end - queries.begin;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t query = queries.begin + i;
    const int64_t row_position = tile.span->start + tile.first + query / group_;
    visible[i] = std::min(row_position + 1 - position, slice);
    hidden[i] = std::max<int64_t>(0, first_seen(row_position) - position);
    q[i] = scratch.q + query * head_dim_;
    out[i] = sums.out + query * head_dim_;
  }
  const UncodedRows keys = uncoded_rows(KvSide::keys, tile, position);
  loops_.attention_page({.keys = keys.data,
                         .values = uncoded_rows(KvSide::values, tile, position).data,
                         .stored = keys.stored,
                         .stride = keys.stride,
                         .head_dim = head_dim_,
                         .queries = count,
                         .q = q,
                         .positions = visible,
                         .hidden = args_.window > 0 ? hidden : nullptr,
                         .maximum = sums.maximum + queries.begin,
                         .denominator = sums.denominator + queries.begin,
                         .out = out});
}

void TileAttention::attend_codes(const QueryTile& tile, const Queries& queries, int64_t position,
                                 const TileScratch& scratch, const Sums& sums) const {
  const auto matrix = [&](const CodedSide& side, int64_t at) {
    return coded_matrix(side, *tile.span, at, tile.kv_head);
  };
  // Behind the last page of a sequence there may be none.
  const bool last = position + page_len_ >= int64_t(tile.span->pages.size()) * page_len_;
  loops_.attention_codes({.keys = matrix(keys_, position),
                          .values = matrix(values_, position),
                          .next_keys = matrix(keys_, last ? position : position + page_len_).codes,
                          .head_dim = head_dim_,
                          .queries = queries.end - queries.begin,
                          .q = scratch.q_codes + queries.begin * head_dim_,
                          .q_scales = scratch.q_scales + queries.begin,
                          .maximum = sums.maximum + queries.begin,
                          .denominator = sums.denominator + queries.begin,
                          .out = sums.out + queries.begin * head_dim_,
                          .scratch = scratch.codes});
}

UncodedRows TileAttention::uncoded_rows(KvSide side, const QueryTile& tile,
                                        int64_t position) const {
  const bool keys = side == KvSide::keys;
  if (coded_) return uncoded_page(keys ? keys_ : values_, *tile.span, position, tile.kv_head);
  const View& pages = keys ? args_.kv.keys : args_.kv.values;
  const int64_t values = plain_vector(args_.kv, *tile.span, position, tile.kv_head) * head_dim_;
  return {pages.data + size_t(values) * bytes_per_value(pages.dtype), stored_kv(pages.dtype),
          head_dim_};
}

void TileAttention::merge(const Sums& part, int64_t count, const Sums& total) const {
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

void TileAttention::finish(const QueryTile& tile, const Sums& total) const {
  for (int64_t i = 0; i < queries(tile); ++i) {
    float* out = args_.out.f32() + (query(tile, i) - args_.q.f32());
    const float factor = stored_factor_ / total.denominator[i];
    for (int64_t d = 0; d < head_dim_; ++d) out[d] = total.out[i * head_dim_ + d] * factor;
    if (coded_) loops_.turbo_unrotate(turbo_signs(KvSide::values).data(), head_dim_, out);
  }
}

}  // namespace slip
