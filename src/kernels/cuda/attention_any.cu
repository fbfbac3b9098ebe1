// Attention over caches of any shape, in float: a block per row and query head, which goes over the
// positions in chunks. For what the tiles do not take.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/kv_codes.cuh"
#include "kernels/cuda/rope.cuh"

namespace slip {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kMostDim = 1024;
constexpr int kDimsPerThread = kMostDim / kThreads;

// Where values of a head lie, for the row at `position` of the span.
struct Reader {
  const DeviceSpan& span;
  int64_t position;
  int kv_head;
};

__device__ __forceinline__ float plain_value(float x) { return x; }
__device__ __forceinline__ float plain_value(uint16_t x) { return bf16_value(x); }
__device__ __forceinline__ float plain_value(uint8_t x) {  // e4m3, as an f16 of value / 256
  const uint16_t bits = uint16_t((x & 0x80) << 8 | (x & 0x7f) << 7);
  return __half2float(__ushort_as_half(bits)) * 256.0f;
}

template <class Element>
struct PlainKv {
  static constexpr bool kCoded = false;
  const Element* sides[2];  // keys, values
  CodedKvShape shape;
  int32_t ring_pages;

  __device__ float at(int side, const Reader& reader, int64_t position, int d) const {
    const int64_t page = reader.span.page(position / shape.page_len, ring_pages);
    const int64_t vector =
        (page * shape.kv_heads + reader.kv_head) * shape.page_len + position % shape.page_len;
    return plain_value(sides[side][vector * shape.head_dim + d]);
  }
};

struct CodedKv {
  static constexpr bool kCoded = true;
  CodedKvSide sides[2];
  CodedKvShape shape;

  __device__ float at(int side, const Reader& reader, int64_t position, int d) const {
    const CodedKvSide& kv = sides[side];
    const DeviceKvTail tail(reader.span, shape.page_len);
    if (!kv.rows) {  // stored by an earlier step, and read as the next position will read it
      if (position >= tail.page_of(reader.position + 1))
        return bf16_value(tail_at(kv, shape, reader.span, tail.place(position), reader.kv_head)[d]);
    } else if (position >= tail.page_of(reader.position)) {
      if (position >= reader.span.start)
        return row_at(kv, shape, reader.span, position, reader.kv_head)[d];
      return bf16_value(
          tail_at(kv, shape, reader.span, tail.beginning_place(position), reader.kv_head)[d]);
    }
    const int64_t vector = vector_at(shape, reader.span, position, reader.kv_head);
    const int bits = kv.book.bits;
    const int64_t first_bit = (vector * shape.head_dim + d) * bits;
    uint32_t code = kv.codes[first_bit / 8] >> (first_bit % 8);
    if (first_bit % 8 + bits > 8)
      code |= uint32_t(kv.codes[first_bit / 8 + 1]) << (8 - first_bit % 8);
    const int level =
        bits == 8 ? int(int8_t(code)) : int(kv.book.levels[code & ((1u << bits) - 1)]);
    return bf16_value(kv.scales[vector]) * float(level);
  }
};

struct AnyParams {
  const float* q;
  float* out;
  const DeviceSpan* spans;
  int32_t span_count;
  int32_t q_heads;
  float scale;
  int64_t window;  // 0: all positions
};

__device__ __forceinline__ float block_max(float x, float* shared) {
  x = warp_max(x);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = x;
  __syncthreads();
  float largest = shared[0];
  for (int i = 1; i < kWarps; ++i) largest = fmaxf(largest, shared[i]);
  return largest;
}

template <class Kv>
__global__ void attend_any_kernel(const __grid_constant__ AnyParams p,
                                  const __grid_constant__ Kv kv) {
  __shared__ float head[kMostDim];
  __shared__ float weights[kThreads];
  __shared__ float sums[kWarp];
  let_next_begin();
  wait_for_inputs();
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const int dim = kv.shape.head_dim;
  const int64_t row = blockIdx.x / p.q_heads;
  const int q_head = int(blockIdx.x % p.q_heads);
  const DeviceSpan* span = span_of_row(p.spans, p.span_count, row);
  if (!span) return;
  const Reader reader{*span, span->start + row - span->first_row,
                      q_head / (p.q_heads / kv.shape.kv_heads)};
  const int64_t at = int64_t(blockIdx.x) * dim;

  for (int d = int(threadIdx.x); d < dim; d += kThreads) head[d] = p.q[at + d];
  __syncthreads();
  if constexpr (Kv::kCoded) {
    if (warp == 0) turbo_rotate(head, dim, kv.sides[0].signs);
    __syncthreads();
  }

  float maximum = -INFINITY, denominator = 0;
  float mixed[kDimsPerThread] = {};
  // Chunks begin at fixed positions, so that a row's sums do not depend on the rows beside it.
  const int64_t begin = p.window > 0 ? max(reader.position + 1 - p.window, int64_t(0)) : 0;
  for (int64_t chunk = begin - begin % kThreads; chunk <= reader.position; chunk += kThreads) {
    const int count = int(min(int64_t(kThreads), reader.position + 1 - chunk));
    for (int i = warp; i < count; i += kWarps) {
      float dot = 0;
      for (int d = lane; d < dim; d += kWarp)
        dot = fmaf(head[d], kv.at(0, reader, chunk + i, d), dot);
      dot = warp_sum(dot);
      if (lane == 0) weights[i] = dot * p.scale;
    }
    __syncthreads();
    const bool exists = int(threadIdx.x) < count && chunk + int(threadIdx.x) >= begin;
    const float score = exists ? weights[threadIdx.x] : -INFINITY;
    const float largest = fmaxf(maximum, block_max(score, sums));
    const float keep = maximum == -INFINITY ? 0.0f : expf(maximum - largest);
    const float weight = exists ? expf(score - largest) : 0.0f;
    maximum = largest;
    denominator = denominator * keep + block_sum(weight, sums);
    weights[threadIdx.x] = weight;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kDimsPerThread; ++e) {
      const int d = int(threadIdx.x) + e * kThreads;
      if (d >= dim) break;
      float sum = mixed[e] * keep;
#pragma unroll 8
      for (int i = 0; i < count; ++i) sum = fmaf(weights[i], kv.at(1, reader, chunk + i, d), sum);
      mixed[e] = sum;
    }
    __syncthreads();
  }

#pragma unroll
  for (int e = 0; e < kDimsPerThread; ++e) {
    const int d = int(threadIdx.x) + e * kThreads;
    if (d < dim) head[d] = mixed[e] / denominator;
  }
  __syncthreads();
  if constexpr (Kv::kCoded) {
    if (warp == 0) turbo_unrotate(head, dim, kv.sides[1].signs);
    __syncthreads();
  }
  for (int d = int(threadIdx.x); d < dim; d += kThreads) p.out[at + d] = head[d];
}

template <class Element>
PlainKv<Element> plain_kv(const KvPages& kv, DType dtype) {
  const Shape& shape = kv.keys.shape;
  return {{kv.keys.as<Element>(dtype), kv.values.as<Element>(dtype)},
          {int32_t(shape[1]), int32_t(shape[2]), int32_t(shape[3])},
          int32_t(kv.ring_pages)};
}

}  // namespace

void attend_any(const Launcher& launcher, const AttentionArgs& args, const DeviceSpan* spans) {
  check(args.q.shape[2] <= kMostDim, "attention: heads of ", args.q.shape[2]);
  const AnyParams params{.q = args.q.f32(),
                         .out = args.out.f32(),
                         .spans = spans,
                         .span_count = int32_t(args.spans.size()),
                         .q_heads = int32_t(args.q.shape[1]),
                         .scale = args.scale,
                         .window = args.window};
  const auto blocks = unsigned(args.q.shape[0] * args.q.shape[1]);
  const auto start = [&]<class Kv>(const Kv& kv) {
    launch(launcher, blocks, kThreads, 0, attend_any_kernel<Kv>, params, kv);
  };
  if (args.kv.recipe.coded())
    return start(CodedKv{{coded_kv_side(KvSide::keys, args.kv, args.k),
                          coded_kv_side(KvSide::values, args.kv, args.v)},
                         coded_kv_shape(args.kv)});
  switch (args.kv.keys.dtype) {
    case DType::f32: return start(plain_kv<float>(args.kv, DType::f32));
    case DType::bf16: return start(plain_kv<uint16_t>(args.kv, DType::bf16));
    case DType::fp8_e4m3: return start(plain_kv<uint8_t>(args.kv, DType::fp8_e4m3));
    default: unreachable("type of keys and values");
  }
}

}  // namespace slip
