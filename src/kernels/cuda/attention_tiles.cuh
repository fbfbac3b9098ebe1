// Attention on tensor cores: one block, some queries of a kv head, a range of positions.
//
// Queries of a span, row after row, are the rows of tiles of 16. Four warps walk over chunks of 64
// positions. For the scores each takes 16 positions, for the mix of values a quarter of the
// dimensions, both for all queries, so that every key and value is read, and unpacked, by one lane.
// In between they exchange maxima and softmax weights through shared memory.
#pragma once

#include "kernels/cuda/attention_combine.cuh"
#include "kernels/cuda/attention_queries.cuh"

namespace slip {

template <class Cache, int kTiles>
class TileBlock {
 public:
  static constexpr int kDim = Cache::kDim;
  using Shared = TileShared<kDim, kTiles>;
  static constexpr bool kWide = kDim > kTileDim;
  // Both keys and values of the next chunk are on their way, unless they take too many registers.
  static constexpr bool kValuesAhead =
      kWide ? kTiles == 1 && is_light<Cache>() : kTiles == 1 || is_light<Cache>();
  // Whether a last page that is not whole is read like the others. It costs a comparison per load
  // and saves code of its own, for which a short step waits.
  static constexpr bool kAllPages = kTiles == 1 && !Cache::kCoded;
  using Values = typename Cache::template Values<!kAllPages>;
  // Heads so wide that no whole chunk fits into registers: piece by piece, when it is needed.
  static constexpr bool kByPieces = kWide && (kTiles > 1 || !Cache::kCoded);

  __device__ TileBlock(const TileParams& params, Shared& shared)
      : p_(params), shared_(shared), queries_(params, shared) {}

  // Asks for what the block reads first, before anybody knows its queries. Since it was last read a
  // step's weights have gone by, so that it lies in no cache, nor does the entry of its page.
  __device__ __forceinline__ void prefetch() const {
    const TileWork& work = shared_.work;
    if (work.begin < (Cache::kCoded ? work.pages_end : work.end)) {
      prefetch_page<typename Cache::Keys>(key_page(work.begin));
      prefetch_page<Values>(value_page(work.begin));
    }
    if constexpr (Cache::kCoded) {
      const int64_t chunk = first_uncoded();
      if (chunk >= work.end) return;
      const int64_t at = tail_begin(chunk);
      const int64_t bytes = min(int64_t(kChunk), work.end - chunk) * kDim * sizeof(uint16_t);
      prefetch_values(p_.key_tail + at, bytes);
      prefetch_values(p_.value_tail + at, bytes);
    }
  }

  // All positions of the work, and what comes of them.
  __device__ __forceinline__ void run() {
    const TileWork& work = shared_.work;
    queries_.bring();
    if constexpr (!kByPieces) {
      run_ahead();
    } else if constexpr (Cache::kCoded) {
      queries_.prepare();
#pragma unroll 1
      for (int64_t chunk = work.begin; chunk < work.pages_end; chunk += kChunk) run_codes(chunk);
    } else {
      queries_.prepare();
#pragma unroll 1
      for (int64_t chunk = work.begin; chunk < work.end; chunk += kChunk)
        run_rows<typename Cache::Partial, 8, 4>(key_page(chunk), value_page(chunk), chunk);
    }
    if constexpr (Cache::kCoded) {
#pragma unroll 1
      for (int64_t chunk = first_uncoded(); chunk < work.end; chunk += kChunk) run_uncoded(chunk);
    }
    queries_.finish();
  }

 private:
  // With the next chunk on its way. Keys and values come in as many parts; a part is asked for when
  // another has been read, whose registers it can have.
  __device__ __forceinline__ void run_ahead() {
    const TileWork& work = shared_.work;
    typename Cache::Keys keys = key_source();
    Values values = value_source();
    constexpr int kParts = Values::kParts;
    const int64_t end = kAllPages ? work.end : work.pages_end;
    if (work.begin < end) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) keys.load(key_page(work.begin), part);
#pragma unroll
      for (int part = 0; part < kParts && kValuesAhead; ++part)
        values.load(value_page(work.begin), part);
    }
    if constexpr (Cache::kCoded && kTiles == 1) bring_uncoded();
    queries_.prepare();
#pragma unroll 1
    for (int64_t chunk = work.begin; chunk < end; chunk += kChunk) {
      const int64_t next = chunk + kChunk;
      const auto load_next_keys = [&](int part) {
        if (next < end) keys.load(key_page(next), part);
      };
      const auto load_next_values = [&](int part) {
        if (next < end) values.load(value_page(next), part);
      };
      const auto load_behind_keys = [&](int part) {
        if constexpr (kValuesAhead)
          load_next_keys(part);
        else
          values.load(value_page(chunk), part);
      };
      Sums scores[kTiles][2];
      const auto key_scales = keys.scales;
      queries_.score(keys, scores, [&](int part) {
        if (part > 0) load_behind_keys(part - 1);
      });
      load_behind_keys(kParts - 1);
      queries_.weigh(key_scales, values.scales, chunk, false, scores);
      queries_.mix(values, [&](int step) {
        if (step != 2) return;
        if constexpr (!kValuesAhead)
          load_next_keys(0);
        else if constexpr (kParts > 1)
          load_next_values(0);
      });
      if constexpr (kValuesAhead)
        load_next_values(kParts - 1);
      else if constexpr (kParts > 1)
        load_next_keys(kParts - 1);
    }
    if constexpr (!Cache::kCoded)
      if (!kAllPages && work.pages_end < work.end)
        run_rows<typename Cache::Partial, 4, 4>(key_page(work.pages_end),
                                                value_page(work.pages_end), work.pages_end);
  }

  __device__ __forceinline__ auto key_source() const {
    if constexpr (Cache::kCoded)
      return typename Cache::Keys(p_.key_table);
    else
      return typename Cache::Keys{};
  }
  __device__ __forceinline__ auto value_source() const {
    if constexpr (Cache::kCoded)
      return Values(p_.value_table);
    else
      return Values{};
  }

  // One side of the page of the cache that holds a chunk.
  template <class Source>
  __device__ __forceinline__ typename Cache::Page page(const uint8_t* side, const uint16_t* scales,
                                                       int64_t chunk) const {
    const int64_t number = shared_.work.page(chunk, p_.ring_pages);
    const int64_t vector = (number * p_.kv_heads + shared_.work.kv_head) * kChunk;
    if constexpr (Cache::kCoded) {
      return {side + vector * (Source::kLaneWords * 4 * kTileThreads / kChunk), scales + vector};
    } else {
      using Value = std::remove_const_t<std::remove_pointer_t<decltype(Cache::Page::rows)>>;
      return {reinterpret_cast<const Value*>(side) + vector * kDim, kDim,
              int(min(int64_t(kChunk), shared_.work.rows_end - chunk))};
    }
  }
  __device__ __forceinline__ auto key_page(int64_t chunk) const {
    return page<typename Cache::Keys>(p_.keys, p_.key_scales, chunk);
  }
  __device__ __forceinline__ auto value_page(int64_t chunk) const {
    return page<Values>(p_.values, p_.value_scales, chunk);
  }

  __device__ __forceinline__ static void prefetch_values(const void* from, int64_t bytes) {
    prefetch_bytes(static_cast<const std::byte*>(from), bytes, int(threadIdx.x), kTileThreads);
  }
  template <class Source>
  __device__ __forceinline__ static void prefetch_page(const typename Cache::Page& page) {
    if constexpr (Cache::kCoded) {
      prefetch_values(page.codes, Source::kLaneWords * 4 * kTileThreads);
      prefetch_values(page.scales, kChunk * sizeof(*page.scales));
    } else {
      prefetch_values(page.rows, page.valid * page.stride * int64_t(sizeof(*page.rows)));
    }
  }

  // The page that the tile's first row reads uncoded, if it is of this block.
  __device__ __forceinline__ int64_t first_uncoded() const {
    const TileWork& work = shared_.work;
    const int64_t position = work.rows_begin + lead<Cache>(p_);
    return max(work.begin, position - position % kChunk);
  }

  // Where a chunk of the tail begins, on either side.
  __device__ __forceinline__ int64_t tail_begin(int64_t chunk) const {
    const DeviceKvTail tail(shared_.work.span, kChunk);
    const int64_t slot = int64_t(shared_.work.span.state_slot) * p_.kv_heads + shared_.work.kv_head;
    const int64_t place = lead<Cache>(p_) > 0 ? tail.place(chunk) : tail.beginning_place(chunk);
    return (slot * 2 * kChunk + place) * kDim;
  }

  // Asks for the beginning of the tail, which is read last and piece by piece.
  __device__ __forceinline__ void bring_uncoded() const {
    constexpr int kLine = 128 / sizeof(uint16_t);
    const int64_t chunk = first_uncoded(), at = tail_begin(chunk);
    const int values = int(min(int64_t(kChunk), shared_.work.end - chunk)) * kDim;
#pragma unroll 1
    for (int i = int(threadIdx.x) * kLine; i < values; i += kTileThreads * kLine) {
      bring_line(p_.key_tail + at + i);
      bring_line(p_.value_tail + at + i);
    }
  }

  // The page that rows of this tile lie in, for those rows. Spans of few rows find all of it in the
  // tail, and so do rows that ask about positions stored before. Others find the page that they
  // start in there, and further ones among the rows of the step.
  __device__ __forceinline__ void run_uncoded(int64_t chunk) {
    const int valid = int(min(int64_t(kChunk), shared_.work.rows_end - chunk));
    if constexpr (kTiles == kWholeTiles) {
      if (p_.segments == 0 && chunk >= shared_.work.span.start && lead<Cache>(p_) == 0) {
        const int64_t row = shared_.work.span.first_row + chunk - shared_.work.span.start;
        const int64_t at = (row * p_.kv_heads + shared_.work.kv_head) * kDim;
        const int64_t stride = int64_t(p_.kv_heads) * kDim;
        using Rows = std::conditional_t<kWide, PackedF32Rows, F32Rows>;
        run_rows<Rows, 8, 4>({p_.k + at, stride, valid}, {p_.v + at, stride, valid}, chunk);
        return;
      }
    }
    const int64_t at = tail_begin(chunk);
    run_rows<Bf16Rows, kTiles == 1 ? 2 : 4, kTiles == 1 ? 2 : 4>(
        {p_.key_tail + at, kDim, valid}, {p_.value_tail + at, kDim, valid}, chunk);
  }

  // A page of codes, a part at a time. The first part of values is asked for with their scales,
  // unless it takes too many registers.
  __device__ __forceinline__ void run_codes(int64_t chunk) {
    Sums scores[kTiles][2];
    typename Cache::PartOfKeys keys(p_.key_table);
    typename Cache::PartOfValues values(p_.value_table);
    constexpr bool kEarly = values.kWords <= 16;
    queries_.score(keys, scores, [&](int part) { keys.load(key_page(chunk), part); });
    if constexpr (kEarly)
      values.load(value_page(chunk), 0);
    else
      values.scales.load(value_page(chunk).scales);
    queries_.weigh(keys.scales, values.scales, chunk, false, scores);
    queries_.mix(values, [&](int step) {
      if (step % values.kSteps == 0 && !(kEarly && step == 0))
        values.load(value_page(chunk), step / values.kSteps);
    });
  }

  template <class Rows, int kKeyParts, int kValueParts>
  __device__ __forceinline__ void run_rows(const RowPage<Rows>& key_rows,
                                           const RowPage<Rows>& value_rows, int64_t chunk) {
    Sums scores[kTiles][2];
    RowKeys<Rows, kDim, kKeyParts, false, Cache::kCoded> keys;
    RowValues<Rows, kDim, kValueParts, false, Cache::kCoded> values;
    queries_.score(keys, scores, [&](int part) { keys.load(key_rows, part); });
    queries_.weigh(keys.scales, values.scales, chunk, true, scores);
    queries_.mix(values, [&](int step) {
      if (step % values.kSteps == 0) values.load(value_rows, step / values.kSteps);
    });
  }

  const TileParams& p_;
  Shared& shared_;
  QueryTiles<Cache, kTiles> queries_;
};

template <class Cache, int kTiles>
__global__ void __launch_bounds__(kTileThreads, TileBlock<Cache, kTiles>::kWide    ? 1
                                                : kTiles == 1 && is_light<Cache>() ? 3
                                                                                   : 2)
    attend_tiles(const __grid_constant__ TileParams p) {
  __shared__ TileShared<Cache::kDim, kTiles> shared;
  // Spans come from the host, before the step.
  if (threadIdx.x == 0) shared.work.find(p, Cache::kCoded, lead<Cache>(p));
  __syncthreads();
  shared.work.list_pages(p, Cache::kCoded);
  __syncthreads();
  TileBlock<Cache, kTiles> block(p, shared);
  const bool has_work = shared.work.begin < shared.work.end;
  if (has_work) block.prefetch();
  wait_for_inputs();
  let_next_begin();
  if (has_work) block.run();
  if (!p.counters) return;
  if (kTiles == 1 && shared.work.alone) {
    if constexpr (kTiles == 1 && Cache::kCoded) {
      __syncthreads();
      if (has_work) leave_turned_back<Cache::kDim>(p, shared.work, shared.result(0));
    }
    return;
  }
  if (finishes_last(p.counters[blockIdx.z * gridDim.x + blockIdx.x], gridDim.y))
    combine_segments<Cache::kDim, Cache::kCoded>(p, shared.work);
}

}  // namespace slip
