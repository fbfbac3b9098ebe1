#include <algorithm>

#include "kernels/cuda/kv_codes.cuh"
#include "kernels/cuda/rope.cuh"
#include "kernels/kv_tail.h"

namespace slip {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;

struct StoreParams {
  RotateParams rotate;
  CodedKvSide keys, values;
  CodedKvShape shape;
};

// The codes of a page, [kTilePositions, dims].
struct PageCodes {
  const uint8_t* codes;
  int dims, bits;
  bool are_keys;
};

// The word that a lane reads as its n-th.
__device__ uint32_t tile_word(const PageCodes& page, int warp, int lane, int n) {
  const int g = lane / 4, j = lane % 4, bits = page.bits;
  const auto code = [&](int octet, int k) -> uint32_t {
    const int m = page.dims / 64, s = octet / m;
    const int position = page.are_keys ? 16 * warp + 8 * (octet / 8 % 2) + g
                                       : 32 * (s / 2) + 8 * j + 4 * (s % 2) + k % 4;
    const int dim = page.are_keys ? 256 * (octet / 16) + 32 * (octet % 8) + 8 * j + k
                                  : 16 * m * warp + 2 * m * g + 2 * (octet % m) + k / 4;
    return page.codes[position * page.dims + dim];
  };
  uint32_t word = 0;
  if (bits == 8) {
    for (int k = 0; k < 4; ++k) word |= code(n / 2, 4 * (n % 2) + k) << (8 * k);
    return word;
  }
  const uint32_t half = 1u << (bits - 1);
  const auto magnitude = [&](int octet, int k) {
    const uint32_t c = code(octet, k);
    return c >= half ? c - half : half - 1 - c;
  };
  const auto sign = [&](int octet, int k) { return code(octet, k) < half ? 1u : 0u; };
  if (bits == 4) {
    for (int k = 0; k < 8; ++k)
      word |= magnitude(n, k) << (4 * k) | sign(n, k) << (8 * (k % 4) + (k < 4 ? 7 : 3));
    return word;
  }
  const int words = bits;  // of four octets: magnitudes, then signs
  const int first = n / words * 4, part = n % words;
  const int octets = bits == 3 ? 2 : 4, width = 4 / octets;  // of a word of magnitudes
  if (part == words - 1) {
    for (int q = 0; q < 4; ++q)
      for (int k = 0; k < 8; ++k) word |= sign(first + q, k) << (8 * (k % 4) + 7 - 2 * q - k / 4);
    return word;
  }
  for (int q = 0; q < octets; ++q)
    for (int k = 0; k < 8; ++k)
      word |= magnitude(first + part * octets + q, k) << (4 * k + width * q);
  return word;
}

// One warp: codes of a vector, one after the other.
__device__ void pack_vector(int bits, int dim, const uint8_t* codes, uint8_t* bytes) {
  for (int n = int(threadIdx.x) % kWarp; n < dim * bits / 8; n += kWarp) {
    uint32_t byte = 0;
    for (int b = 0; b < 8; ++b) {
      const int bit = 8 * n + b;
      byte |= uint32_t(codes[bit / bits] >> (bit % bits) & 1) << b;
    }
    bytes[n] = uint8_t(byte);
  }
}

// One block codes the page that begins at `page`; `codes` (shared) has room for a page if it is in
// tiles, for a vector per warp otherwise. Of the beginning it reads what is still in its place. A
// function of its own: few steps complete a page, and the others should not have to wait for more
// code than theirs.
__device__ __noinline__ void encode_page(const CodedKvSide& kv, const CodedKvShape& shape,
                                         const DeviceSpan& span, int64_t page, int head,
                                         uint8_t* codes) {
  const DeviceKvTail tail(span, shape.page_len);
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const int dim = shape.head_dim, bits = kv.book.bits;
  const int64_t first_vector = vector_at(shape, span, page, head);
  for (int i = warp; i < shape.page_len; i += kWarps) {
    const int64_t position = page + i;
    const bool in_step = position >= span.start;
    const float* row = in_step ? row_at(kv, shape, span, position, head) : nullptr;
    const uint16_t* kept = in_step ? nullptr : tail_at(kv, shape, span, tail.place(position), head);
    uint8_t* vector_codes = codes + (shape.in_tiles() ? i : warp) * dim;
    const uint16_t scale = encode_vector(
        kv.book, dim, [&](int d) { return in_step ? row[d] : bf16_value(kept[d]); }, vector_codes);
    if (lane == 0) kv.scales[first_vector + i] = scale;
    if (shape.in_tiles()) continue;
    __syncwarp();
    pack_vector(bits, dim, vector_codes, kv.codes + (first_vector + i) * (dim * bits / 8));
    __syncwarp();
  }
  if (!shape.in_tiles()) return;
  __syncthreads();
  const PageCodes page_codes{.codes = codes, .dims = dim, .bits = bits, .are_keys = kv.is_keys};
  const int warp_words = kTilePositions * dim * bits / 32 / 4;
  auto* words = reinterpret_cast<uint32_t*>(kv.codes + first_vector * (dim * bits / 8));
  for (int i = int(threadIdx.x); i < 4 * warp_words; i += kThreads) {
    const int in_warp = i % warp_words;
    const int piece = in_warp / (4 * kWarp), word_lane = in_warp / 4 % kWarp;
    words[i] = tile_word(page_codes, i / warp_words, word_lane, piece * 4 + in_warp % 4);
  }
  __syncthreads();
}

// One block, after the rows of the span are rotated: see kv_tail.h. Also completes the beginning of
// the first page, so that attention finds that page in one piece. Of several blocks, `part` is one.
__device__ void store_span(const CodedKvSide& kv, const CodedKvShape& shape, const DeviceSpan& span,
                           int head, int part, int parts, uint8_t* codes) {
  const DeviceKvTail tail(span, shape.page_len);
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
#pragma unroll 1
  for (int64_t page = tail.first_page() + int64_t(part) * shape.page_len; page < tail.last_page();
       page += int64_t(parts) * shape.page_len)
    encode_page(kv, shape, span, page, head, codes);
  if (part != 0) return;

  __syncthreads();  // the beginning has been read
  if (tail.moves_beginning()) {
#pragma unroll 1
    for (int64_t p = tail.first_page() + warp; p < span.start; p += kWarps) {
      const uint16_t* from = tail_at(kv, shape, span, tail.place(p), head);
      uint16_t* to = tail_at(kv, shape, span, tail.beginning_place(p), head);
#pragma unroll 4
      for (int d = lane; d < shape.head_dim; d += kWarp) to[d] = from[d];
    }
  }
  __syncthreads();
  const bool has_beginning = span.start > tail.first_page();
#pragma unroll 1
  for (int64_t p = span.start + warp; p < span.start + span.rows; p += kWarps) {
    int64_t place = tail.place(p);
    if (p < tail.first_written()) {
      if (!has_beginning || p >= tail.first_page() + shape.page_len) continue;
      place = tail.beginning_place(p);
    }
    const float* from = row_at(kv, shape, span, p, head);
    uint16_t* to = tail_at(kv, shape, span, place, head);
    for (int d = lane; d < shape.head_dim; d += kWarp) to[d] = bf16_bits(from[d]);
  }
}

// Heads of other sizes than kernels are made for.
__device__ __noinline__ void rotate_in_memory(float* head, int dim, const SignBits& signs) {
  turbo_rotate(head, dim, signs);
}

// One warp: a key or value of the step becomes what the tail holds.
template <int kMost>
__device__ void rotate_row(const StoreParams& p, bool is_keys, int64_t row, int kv_head,
                           float* head) {
  const int dim = p.shape.head_dim;
  const CodedKvSide& kv = is_keys ? p.keys : p.values;
  float* x = kv.rows + (row * p.shape.kv_heads + kv_head) * dim;
  if (is_keys) {
    normalise_and_rotate<kMost>(p.rotate, row, x, p.rotate.k_scale, p.rotate.pairs, head);
  } else {
    for_head<kMost>(dim, [&](int d) { head[d] = x[d]; });
    __syncwarp();
  }
  if (dim == kMost * kWarp) {
    float values[kMost];
#pragma unroll
    for (int e = 0; e < kMost; ++e) values[e] = head[int(threadIdx.x) % kWarp + kWarp * e];
    rotate_in_registers(values, kv.signs);
#pragma unroll
    for (int e = 0; e < kMost; ++e)
      x[int(threadIdx.x) % kWarp + kWarp * e] = bf16_value(bf16_bits(values[e]));
    return;
  }
  rotate_in_memory(head, dim, kv.signs);
  for_head<kMost>(dim, [&](int d) { x[d] = bf16_value(bf16_bits(head[d])); });
}

// Shared memory: a head per warp. Where a block stores too, codes take the place of heads that have
// been rotated.
__device__ __forceinline__ float* head_of_warp(std::byte* shared, int dim) {
  return reinterpret_cast<float*>(shared) + int(threadIdx.x) / kWarp * dim;
}

// A warp per row and head: of queries, then of keys, then of values.
__global__ void rotate_kernel(const __grid_constant__ StoreParams p) {
  std::byte* const shared = launch_memory;
  let_next_begin();
  wait_for_inputs();
  const int q_heads = p.rotate.q_heads, kv_heads = p.shape.kv_heads;
  const int64_t index = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const int64_t row = index / (q_heads + 2 * kv_heads);
  if (row >= p.rotate.rows || !span_of_row(p.rotate.spans, p.rotate.span_count, row)) return;
  const int item = int(index % (q_heads + 2 * kv_heads));
  float* head = head_of_warp(shared, p.shape.head_dim);
  if (item < q_heads)
    rotate_query<kWidestHead / kWarp>(p.rotate, row, item, head);
  else
    rotate_row<kWidestHead / kWarp>(p, item < q_heads + kv_heads, row, (item - q_heads) % kv_heads,
                                    head);
}

// A block per part, head of keys and of values, and span.
__global__ void store_kernel(const __grid_constant__ StoreParams p) {
  std::byte* const shared = launch_memory;
  let_next_begin();
  wait_for_inputs();
  const DeviceSpan span = p.rotate.spans[blockIdx.z];
  if (span.rows == 0) return;
  store_span(blockIdx.y % 2 == 0 ? p.keys : p.values, p.shape, span, int(blockIdx.y) / 2,
             int(blockIdx.x), int(gridDim.x), reinterpret_cast<uint8_t*>(shared));
}

// Both for spans of few rows: blocks of queries, then a block per span and head of keys and of
// values, which rotates its rows and stores them. kMost values of a head to a lane. Spans come from
// the host and are read while the kernel in front ends.
template <int kMost>
__global__ void rotate_and_store_few_kernel(const __grid_constant__ StoreParams p, int q_blocks) {
  std::byte* const shared = launch_memory;
  const int warp = int(threadIdx.x) / kWarp;
  float* head = head_of_warp(shared, p.shape.head_dim);
  if (int(blockIdx.x) < q_blocks) {
    const uint32_t index = blockIdx.x * kWarps + uint32_t(warp), heads = p.rotate.q_heads;
    const auto row = int(index / heads);
    const bool exists =
        row < p.rotate.rows && span_of_row(p.rotate.spans, p.rotate.span_count, row);
    wait_for_inputs();
    let_next_begin();
    if (exists) rotate_query<kMost>(p.rotate, row, int(index % heads), head);
    return;
  }
  const int index = int(blockIdx.x) - q_blocks;
  const bool is_keys = index % 2 == 0;
  const int kv_head = index / 2 % p.shape.kv_heads;
  const DeviceSpan span = p.rotate.spans[index / 2 / p.shape.kv_heads];
  wait_for_inputs();
  let_next_begin();
  if (span.rows == 0) return;
#pragma unroll 1
  for (int row = warp; row < span.rows; row += kWarps)
    rotate_row<kMost>(p, is_keys, span.first_row + row, kv_head, head);
  __syncthreads();
  store_span(is_keys ? p.keys : p.values, p.shape, span, kv_head, 0, 1,
             reinterpret_cast<uint8_t*>(shared));
}

}  // namespace

SignBits sign_bits(KvSide side) {
  const std::span<const float> signs = turbo_signs(side);
  SignBits bits{};
  for (size_t d = 0; d < signs.size(); ++d)
    if (signs[d] < 0) bits.words[d / 32] |= 1u << (d % 32);
  return bits;
}

DeviceBook device_book(KvCodec codec) {
  DeviceBook device{};
  device.bits = bits_of(codec);
  if (codec == KvCodec::int8) return device;
  const TurboBook& book = turbo_book(device.bits);
  std::ranges::copy(book.thresholds, device.thresholds);
  std::ranges::copy(book.levels, device.levels);
  device.kappa = book.kappa;
  return device;
}

CodedKvSide coded_kv_side(KvSide side, const KvPages& kv, const View& rows) {
  const bool keys = side == KvSide::keys;
  return {.codes = (keys ? kv.keys : kv.values).as<uint8_t>(DType::u8),
          .scales = (keys ? kv.key_scales : kv.value_scales).as<uint16_t>(DType::bf16),
          .tail = (keys ? kv.key_tail : kv.value_tail).as<uint16_t>(DType::bf16),
          .rows = rows.empty() ? nullptr : rows.f32(),
          .signs = sign_bits(side),
          .book = device_book(keys ? kv.recipe.keys : kv.recipe.values),
          .is_keys = keys};
}

void rotate_and_store_coded(const Launcher& launcher, const RotateAndStoreArgs& args,
                            const DeviceSpan* spans) {
  const StoreParams params{.rotate = rotate_params(args, spans),
                           .keys = coded_kv_side(KvSide::keys, args.kv, args.k),
                           .values = coded_kv_side(KvSide::values, args.kv, args.v),
                           .shape = coded_kv_shape(args.kv)};
  const CodedKvShape& shape = params.shape;
  check(turbo_dim_ok(shape.head_dim) && shape.head_dim >= 8, "no codes of ", shape.head_dim,
        " dimensions");
  int64_t most_rows = 0;
  for (const Span& span : args.spans) {
    const KvTail tail(span, shape.page_len);  // checks that what may be rejected fits
    most_rows = std::max(most_rows, span.rows);
  }
  const size_t heads_bytes = sizeof(float) * size_t(kWarps * shape.head_dim);
  const auto codes_bytes = size_t((shape.in_tiles() ? kTilePositions : kWarps) * shape.head_dim);
  const auto blocks_for = [](int64_t warps) { return unsigned((warps + kWarps - 1) / kWarps); };
  const int64_t rows = params.rotate.rows;
  const auto kv_blocks = unsigned(2 * shape.kv_heads), span_count = unsigned(args.spans.size());
  if (most_rows <= kFewRows) {
    const unsigned q_blocks = blocks_for(rows * params.rotate.q_heads);
    constexpr int kUsual = 256 / kWarp, kWide = kWidestHead / kWarp;
    const auto kernel = shape.head_dim <= 256 ? rotate_and_store_few_kernel<kUsual>
                                              : rotate_and_store_few_kernel<kWide>;
    launch(launcher, q_blocks + span_count * kv_blocks, kThreads,
           std::max(heads_bytes, codes_bytes), kernel, params, int(q_blocks));
    return;
  }
  launch(launcher, blocks_for(rows * (params.rotate.q_heads + 2 * shape.kv_heads)), kThreads,
         heads_bytes, rotate_kernel, params);
  const auto parts = unsigned(most_rows / shape.page_len + 1);
  launch(launcher, dim3(parts, kv_blocks, span_count), kThreads, codes_bytes, store_kernel, params);
}

}  // namespace slip
