#include <algorithm>
#include <numbers>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_work.cuh"
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/kv_codes.cuh"
#include "kernels/cuda/rope.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kUnrotateWarps = 8;

// What turns sums over values into the output.
struct Finish {
  float* out;
  const DeviceSpan* spans;
  int32_t first_span, span_count;  // of this launch
  int32_t q_heads, head_dim;
  float value_factor;
  int64_t window;  // 0: all positions
  SignBits signs;  // of values, which are rotated
};

// Adds up the segments of one row and head; block (row of the partials, head). Segments are dealt
// out in a fixed way, so that a row's sum depends on its own position alone. Sums of coded values
// are turned back: of heads of kRotated dimensions, or 0.
template <int kRotated>
__global__ void __launch_bounds__(kCombineThreads, 1)
    combine_kernel(const __grid_constant__ Finish p, const __grid_constant__ Partials partials,
                   int segments) {
  auto* const weights = reinterpret_cast<float*>(launch_memory);  // [segments]
  __shared__ float4 shares[kCombineThreads];
  __shared__ float head[kRotated > 0 ? kRotated : 1];
  __shared__ float sums[kWarp];
  let_next_begin();
  wait_for_inputs();
  // Asked for before it is known whether they count: what follows would wait for each in turn.
  const int quads = p.head_dim / 4, dealt = kCombineThreads / quads;
  const int quad = int(threadIdx.x) % quads, share = int(threadIdx.x) / quads;
  const int64_t first = (int64_t(blockIdx.x) * p.q_heads + blockIdx.y) * segments;
  const float2* stats = partials.stats + first;
  const auto* from = reinterpret_cast<const float4*>(partials.sums) + first * quads + quad;
  const float4 first_sum = share < segments ? from[int64_t(share) * quads] : float4{};
  const int lane = int(threadIdx.x) % kWarp;
  const float first_unit = lane < segments ? stats[lane].x : 0.0f;
  int row = int(blockIdx.x), index = p.first_span;
  while (p.spans[index].rows > kSplitRows || row >= p.spans[index].rows) {
    if (p.spans[index].rows <= kSplitRows) row -= p.spans[index].rows;
    ++index;
  }
  const DeviceSpan& span = p.spans[index];
  // Segments before the window of the span's first row have not been computed. Those from there on
  // are dealt out by their numbers all the same.
  const Segments layer = Segments::of_layer(p.window);
  const int begin = int(layer.first_seen(span.start, p.window));
  const int count = int(layer.count(span.start + row + 1)) - begin;
  float largest = lane < count ? first_unit : -INFINITY;
  for (int i = lane + kWarp; i < count; i += kWarp) largest = fmaxf(largest, stats[i].x);
  largest = warp_max(largest);  // the same in every warp
  float denominator = 0;
  const int first_own = (int(threadIdx.x) - begin) & (kCombineThreads - 1);
  for (int i = first_own; i < count; i += kCombineThreads) {
    const float weight = exp2f(stats[i].x - largest);
    weights[i] = weight;
    denominator = fmaf(weight, stats[i].y, denominator);
  }
  denominator = block_sum(denominator, sums);  // and all weights are there

  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (int i = (share - begin) & (dealt - 1); i < count; i += dealt) {
    const float4 x = i == share ? first_sum : from[int64_t(i) * quads];
    const float weight = weights[i];
    sum = make_float4(fmaf(weight, x.x, sum.x), fmaf(weight, x.y, sum.y), fmaf(weight, x.z, sum.z),
                      fmaf(weight, x.w, sum.w));
  }
  shares[threadIdx.x] = sum;
  __syncthreads();
  const float factor = __fmul_rn(reciprocal(denominator), p.value_factor);
  float* out = p.out + ((int64_t(span.first_row) + row) * p.q_heads + blockIdx.y) * p.head_dim;
  for (int d = int(threadIdx.x); d < p.head_dim; d += kCombineThreads) {
    const auto* values = reinterpret_cast<const float*>(shares) + d;
    float total = values[0];
    for (int i = 1; i < dealt; ++i) total += values[i * p.head_dim];
    total = __fmul_rn(total, factor);
    if constexpr (kRotated > 0)
      head[d] = total;
    else
      out[d] = total;
  }
  if constexpr (kRotated > 0) {
    __syncthreads();
    if (threadIdx.x >= kWarp) return;
    float x[kRotated / kWarp];
#pragma unroll
    for (int e = 0; e < kRotated / kWarp; ++e) x[e] = head[threadIdx.x + kWarp * e];
    unrotate_in_registers(x, p.signs);
#pragma unroll
    for (int e = 0; e < kRotated / kWarp; ++e) out[threadIdx.x + kWarp * e] = x[e];
  }
}

using CombineKernel = void (*)(Finish, Partials, int);

CombineKernel combine_kernel_for(const KvRecipe& recipe, int64_t head_dim) {
  if (!recipe.coded()) return combine_kernel<0>;
  return head_dim == kWideTileDim ? combine_kernel<kWideTileDim> : combine_kernel<kTileDim>;
}

// Turns back what blocks that saw all positions have written; a warp per row and head.
__global__ void unrotate_kernel(const __grid_constant__ Finish p, int64_t rows) {
  __shared__ float heads[kUnrotateWarps][kWideTileDim];
  let_next_begin();
  wait_for_inputs();
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const int64_t vector = int64_t(blockIdx.x) * kUnrotateWarps + warp;
  const int64_t row = vector / p.q_heads;
  if (row >= rows) return;
  const DeviceSpan* span = span_of_row(p.spans, p.span_count, row);
  if (!span || span->rows <= kSplitRows) return;
  float* out = p.out + vector * p.head_dim;
  for (int d = lane; d < p.head_dim; d += kWarp) heads[warp][d] = out[d];
  __syncwarp();
  turbo_unrotate(heads[warp], p.head_dim, p.signs);
  for (int d = lane; d < p.head_dim; d += kWarp) out[d] = heads[warp][d];
}

// Null if these pages are not for tiles.
TileKernel tile_kernel(const KvPages& kv, const Dims& dims, int tiles) {
  const auto aligned = [](const View& view) {
    return reinterpret_cast<uintptr_t>(view.data) % sizeof(uint4) == 0;
  };
  if (dims["page_len"] != kTilePositions) return nullptr;
  if (!kv.recipe.coded()) {
    const TileKernel kernel = plain_tile_kernel(kv.recipe.keys, dims["head_dim"], tiles);
    return aligned(kv.keys) && aligned(kv.values) ? kernel : nullptr;
  }
  if (!coded_kv_shape(kv).in_tiles()) return nullptr;
  for (const View& view :
       {kv.keys, kv.values, kv.key_scales, kv.value_scales, kv.key_tail, kv.value_tail})
    check(aligned(view), "attention: coded pages at ", view.data, " are not aligned");
  return coded_tile_kernel(kv.recipe, dims["head_dim"], tiles);
}

TileParams tile_params(const AttentionArgs& args, const DeviceSpan* spans) {
  const KvPages& kv = args.kv;
  const float stored = kv.recipe.keys == KvCodec::fp8 ? kFp8Factor : 1.0f;
  TileParams params{};
  params.q = args.q.f32();
  params.out = args.out.f32();
  params.spans = spans;
  params.keys = reinterpret_cast<const uint8_t*>(kv.keys.data);
  params.values = reinterpret_cast<const uint8_t*>(kv.values.data);
  params.q_heads = int32_t(args.q.shape[1]);
  params.kv_heads = int32_t(kv.keys.shape[1]);
  params.group = params.q_heads / params.kv_heads;
  params.score_factor = args.scale * std::numbers::log2e_v<float> * stored;
  params.value_factor = stored;
  params.window = args.window;
  params.ring_pages = int32_t(kv.ring_pages);
  if (!kv.recipe.coded()) return params;
  params.lead = args.k.empty() ? 1 : 0;
  check(params.lead == 0 || args.q.shape[2] > kTileDim, "attention: coded heads of ",
        args.q.shape[2], " dimensions are read beside the step's own keys");
  params.key_scales = kv.key_scales.as<uint16_t>(DType::bf16);
  params.value_scales = kv.value_scales.as<uint16_t>(DType::bf16);
  params.key_tail = kv.key_tail.as<uint16_t>(DType::bf16);
  params.value_tail = kv.value_tail.as<uint16_t>(DType::bf16);
  params.k = args.k.empty() ? nullptr : args.k.f32();
  params.v = args.k.empty() ? nullptr : args.v.f32();
  params.key_table = magnitude_table(kv.recipe.keys);
  params.value_table = magnitude_table(kv.recipe.values);
  params.signs = sign_bits(KvSide::keys);
  params.value_signs = sign_bits(KvSide::values);
  return params;
}

int64_t split_rows(const Span& span) { return span.rows <= kSplitRows ? span.rows : 0; }

unsigned ceil_div(int64_t a, int64_t b) { return unsigned((a + b - 1) / b); }

// How many of a kv head's queries a block takes, if each is needed `ranges` times. While there are
// multiprocessors that would have little to do, few: a warp prepares and adds up its queries one
// after the other.
int queries_per_block(int64_t queries, int64_t ranges, int multiprocessors) {
  constexpr int kBlocksAtOnce = 2;  // of a multiprocessor
  int count = kTileWarps;
  while (count < queries && count < 2 * kTileQueries &&
         ceil_div(queries, count) * ranges > kBlocksAtOnce * multiprocessors)
    count *= 2;
  return count;
}

}  // namespace

void CudaOps::attention(const AttentionArgs& args) {
  const Dims dims = check_shapes(args);
  int64_t most_split = 0, most_whole = 0;
  for (const Span& span : args.spans) {
    most_split = std::max(most_split, split_rows(span));
    if (span.rows > kSplitRows) most_whole = std::max(most_whole, span.rows);
  }
  if (most_split == 0 && most_whole == 0) return;
  const DeviceSpan* spans = spans_on_device(args.spans);
  const TileKernel whole_kernel = tile_kernel(args.kv, dims, kWholeTiles);
  if (!whole_kernel) return attend_any(launcher_, args, spans);

  TileParams params = tile_params(args, spans);
  const int64_t rows = dims["rows"], head_dim = dims["head_dim"];
  const auto kv_heads = unsigned(params.kv_heads);
  const size_t span_count = args.spans.size();
  Finish finish{.out = params.out,
                .spans = spans,
                .first_span = 0,
                .span_count = int32_t(span_count),
                .q_heads = params.q_heads,
                .head_dim = int32_t(head_dim),
                .value_factor = params.value_factor,
                .window = args.window,
                .signs = sign_bits(KvSide::values)};

  if (most_whole > 0) {
    params.block_queries = kWholeTiles * kTileQueries;
    const dim3 grid(ceil_div(most_whole * params.group, params.block_queries), 1,
                    unsigned(span_count) * kv_heads);
    launch(launcher_, grid, kTileThreads, 0, whole_kernel, params);
    const int64_t warps = rows * params.q_heads;
    if (args.kv.recipe.coded())
      launch(launcher_, unsigned((warps + kUnrotateWarps - 1) / kUnrotateWarps),
             kUnrotateWarps * kWarp, 0, unrotate_kernel, finish, rows);
  }
  if (most_split == 0) return;

  const int64_t segments = Segments::most(args.window, context_to_cover(args.spans));
  const int64_t queries = most_split * params.group;
  const bool few_segments = segments <= kFewSegments;
  for (size_t first = 0, end = 0; first < span_count; first = end) {
    // Scratch is for kSplitRows rows: so many spans at a time.
    int64_t group_rows = 0;
    for (; end < span_count && group_rows + split_rows(args.spans[end]) <= kSplitRows; ++end)
      group_rows += split_rows(args.spans[end]);
    if (group_rows == 0) continue;
    std::byte* memory = scratch(partial_bytes(group_rows, params.q_heads, segments, head_dim));
    const int64_t sums = group_rows * params.q_heads * segments * head_dim;
    params.partials = {.stats = reinterpret_cast<float2*>(memory + size_t(sums) * sizeof(float)),
                       .sums = reinterpret_cast<float*>(memory)};
    params.segments = int32_t(segments);
    params.first_span = finish.first_span = int32_t(first);
    const auto heads = unsigned(end - first) * kv_heads;
    params.block_queries = queries_per_block(queries, segments * heads, launcher_.multiprocessors);
    const dim3 grid(ceil_div(queries, params.block_queries), unsigned(segments), heads);
    const int tiles = params.block_queries <= kTileQueries ? 1 : 2;
    const bool at_once = few_segments && grid.x * grid.z <= kCounters;
    params.counters = at_once ? counters() : nullptr;
    launch(launcher_, grid, kTileThreads, 0, tile_kernel(args.kv, dims, tiles), params);
    if (at_once) continue;
    launch(launcher_, dim3(unsigned(group_rows), unsigned(params.q_heads)), kCombineThreads,
           size_t(segments) * sizeof(float), combine_kernel_for(args.kv.recipe, head_dim), finish,
           params.partials, int(segments));
  }
}

}  // namespace slip
