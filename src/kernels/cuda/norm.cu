#include <algorithm>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/cuda/row_norm.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

using gemv::form_of, gemv::Rounds;

constexpr int kMostThreads = 1024;
constexpr int kMostSlabs = 512;
constexpr int kHeadsPerBlock = 4;  // a warp each

struct NormParams {
  const float* x;
  const float* scale;  // null: 1
  float* out;
  int64_t dim;
  float eps, factor;
  bool add;
  std::byte* rounded;  // what is normed, as projections take it
};

template <bool kAligned>
__device__ __forceinline__ float4 scale_at(const NormParams& p, int64_t i) {
  return p.scale ? load_quad<kAligned>(p.scale, i, p.dim) : make_float4(1, 1, 1, 1);
}

// What is added to, where anything is.
template <bool kAligned>
__device__ __forceinline__ float4 before_at(const NormParams& p, const float* out, int64_t i) {
  return p.add ? load_quad<kAligned>(out, i, p.dim) : make_float4(0, 0, 0, 0);
}

__device__ __forceinline__ float4 finished(const NormParams& p, float4 before, float4 normed) {
  return product_of(p.factor, p.add ? sum_of(before, normed) : normed);
}

// A block per row, a warp per slab. The first two slabs of a warp, all there are up to 8192 per
// row, stay in registers, and everything about them is asked for at once.
template <bool kAligned, Rounds kRounds>
__global__ void rms_norm_kernel(const __grid_constant__ NormParams p) {
  constexpr int kHeld = 2;
  __shared__ float squares[kMostSlabs];
  const int64_t dim = p.dim;
  const int slabs = int((dim + kNormSlab - 1) / kNormSlab);
  const int warp = int(threadIdx.x) / kWarp, warps = int(blockDim.x) / kWarp;
  const auto column = [&](int slab) {
    return int64_t(slab) * kNormSlab + int(threadIdx.x) % kWarp * kQuad;
  };
  const float* x = p.x + blockIdx.x * dim;
  float* out = p.out + blockIdx.x * dim;
  float4 scale[kHeld], held[kHeld], before[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) scale[i] = scale_at<kAligned>(p, column(warp + i * warps));
  let_next_begin();
  wait_for_inputs();

#pragma unroll
  for (int i = 0; i < kHeld; ++i) held[i] = load_quad<kAligned>(x, column(warp + i * warps), dim);
#pragma unroll
  for (int i = 0; i < kHeld; ++i) before[i] = before_at<kAligned>(p, out, column(warp + i * warps));
  const auto keep = [&](int slab, float4 quad) {
    const float sum = slab_squares(quad);
    if (threadIdx.x % kWarp == 0 && slab < slabs) squares[slab] = sum;
  };
#pragma unroll
  for (int i = 0; i < kHeld; ++i) keep(warp + i * warps, held[i]);
  for (int slab = warp + kHeld * warps; slab < slabs; slab += warps)
    keep(slab, load_quad<kAligned>(x, column(slab), dim));
  __syncthreads();
  const float inverse = inverse_rms(row_squares(squares, slabs), dim, p.eps);

  const auto leave = [&](int slab, float4 normed) {
    store_quad<kAligned>(out, column(slab), dim, normed);
    if constexpr (kRounds != Rounds::no)
      if (slab < slabs)
        gemv::round_to<form_of(kRounds)>(p.rounded, normed, int(blockIdx.x), int(gridDim.x), slab,
                                         slabs);
  };
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    leave(warp + i * warps, finished(p, before[i], scaled(held[i], inverse, scale[i])));
  for (int slab = warp + kHeld * warps; slab < slabs; slab += warps) {
    const int64_t i = column(slab);
    leave(slab,
          finished(p, before_at<kAligned>(p, out, i),
                   scaled(load_quad<kAligned>(x, i, dim), inverse, scale_at<kAligned>(p, i))));
  }
}

// A warp per head; the first four values of a lane are all there are up to 128 per head.
template <bool kAligned>
__global__ void gated_rms_norm_kernel(const float* x, const float* gate, const float* scale,
                                      float* out, int64_t heads, int64_t dim, float eps) {
  const int64_t head = int64_t(blockIdx.x) * kHeadsPerBlock + threadIdx.x / kWarp;
  const int64_t first = int64_t(threadIdx.x) % kWarp * kQuad;
  constexpr int64_t kStride = kWarp * kQuad;
  const float4 first_scale = load_quad<kAligned>(scale, first, dim);
  let_next_begin();
  wait_for_inputs();
  if (head >= heads) return;

  x += head * dim;
  gate += head * dim;
  out += head * dim;
  const float4 first_x = load_quad<kAligned>(x, first, dim);
  const float4 first_gate = load_quad<kAligned>(gate, first, dim);
  float squares = add_squares(0, first_x);
  for (int64_t i = first + kStride; i < dim; i += kStride)
    squares = add_squares(squares, load_quad<kAligned>(x, i, dim));
  const float inverse = inverse_rms(warp_sum(squares), dim, eps);

  store_quad<kAligned>(out, first, dim, gated(scaled(first_x, inverse, first_scale), first_gate));
  for (int64_t i = first + kStride; i < dim; i += kStride) {
    const float4 normed =
        scaled(load_quad<kAligned>(x, i, dim), inverse, load_quad<kAligned>(scale, i, dim));
    store_quad<kAligned>(out, i, dim, gated(normed, load_quad<kAligned>(gate, i, dim)));
  }
}

template <Rounds kRounds>
auto kernel_for(bool aligned) {
  return aligned ? rms_norm_kernel<true, kRounds> : rms_norm_kernel<false, kRounds>;
}

}  // namespace

void CudaOps::rms_norm(const RmsNormArgs& args) { norm_and_round(args, {}); }

void CudaOps::norm_and_round(const RmsNormArgs& args, const RoundedTo& rounded) {
  check_shapes(args);
  const int64_t rows = args.x.shape[0], dim = args.x.shape[1];
  check(dim <= kMostSlabs * kNormSlab, "rms_norm: ", dim, " values per row");
  if (rows == 0) return;
  const NormParams params{.x = args.x.f32(),
                          .scale = args.scale.empty() ? nullptr : args.scale.f32(),
                          .out = args.out.f32(),
                          .dim = dim,
                          .eps = args.eps,
                          .factor = args.factor,
                          .add = args.add,
                          .rounded = rounded.memory};
  const int64_t warps = (dim + kNormSlab - 1) / kNormSlab;
  const unsigned threads = unsigned(std::clamp<int64_t>(warps * kWarp, kWarp, kMostThreads));
  const bool aligned = rows_of_quads(dim, {params.x, params.scale, params.out});
  const Rounds rounds = gemv::rounds_to(rounded);
  const auto kernel = rounds == Rounds::no            ? kernel_for<Rounds::no>(aligned)
                      : rounds == Rounds::to_integers ? kernel_for<Rounds::to_integers>(aligned)
                                                      : kernel_for<Rounds::to_halves>(aligned);
  launch(launcher_, unsigned(rows), threads, 0, kernel, params);
}

void CudaOps::gated_rms_norm(const GatedRmsNormArgs& args) {
  check_shapes(args);
  const int64_t heads = args.x.shape[0] * args.x.shape[1], dim = args.x.shape[2];
  if (heads == 0) return;
  const float *x = args.x.f32(), *gate = args.gate.f32(), *scale = args.scale.f32();
  float* out = args.out.f32();
  const auto kernel = rows_of_quads(dim, {x, gate, scale, out}) ? gated_rms_norm_kernel<true>
                                                                : gated_rms_norm_kernel<false>;
  const unsigned blocks = unsigned((heads + kHeadsPerBlock - 1) / kHeadsPerBlock);
  launch(launcher_, blocks, kHeadsPerBlock * kWarp, 0, kernel, x, gate, scale, out, heads, dim,
         args.eps);
}

}  // namespace slip
