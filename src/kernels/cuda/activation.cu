#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/quads.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kThreads = 256;

struct GatedMulParams {
  const float* gate;
  const float* up;  // from its first column on
  float* out;
  int64_t count;
  int64_t width, up_width;  // of a row
  bool gelu;
};

// Quads lie in one row where rows are whole quads; otherwise a thread has one value.
template <bool kAligned>
__global__ void gated_mul_kernel(const __grid_constant__ GatedMulParams p) {
  constexpr int kValues = kAligned ? kQuad : 1;
  const int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * kValues;
  let_next_begin();
  wait_for_inputs();
  if (i >= p.count) return;
  const int64_t from = p.up_width == p.width ? i : i / p.width * p.up_width + i % p.width;
  if constexpr (kAligned) {
    const float4 g = load_quad<true>(p.gate, i, p.count), u = load_quad<true>(p.up, from, from + 4);
    store_quad<true>(p.out, i, p.count,
                     make_float4(activated(g.x, p.gelu) * u.x, activated(g.y, p.gelu) * u.y,
                                 activated(g.z, p.gelu) * u.z, activated(g.w, p.gelu) * u.w));
  } else {
    p.out[i] = activated(p.gate[i], p.gelu) * p.up[from];
  }
}

__global__ void soft_cap_kernel(float* x, int64_t count, float cap) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  let_next_begin();
  wait_for_inputs();
  if (i < count) x[i] = cap * tanhf(x[i] / cap);
}

// Block (part of a row, row); Unit is float or float4.
template <class Unit>
__global__ void join_kernel(const Unit* a, int64_t left, const Unit* b, int64_t right, Unit* out) {
  a += blockIdx.y * left;
  b += blockIdx.y * right;
  out += blockIdx.y * (left + right);
  let_next_begin();
  wait_for_inputs();
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < left + right) out[i] = i < left ? a[i] : b[i - left];
}

template <class Unit>
void launch_join(const Launcher& launcher, const JoinArgs& args) {
  constexpr int64_t kValues = sizeof(Unit) / sizeof(float);
  const int64_t left = args.a.shape[1] / kValues, right = args.b.shape[1] / kValues;
  const dim3 grid{unsigned((left + right + kThreads - 1) / kThreads), unsigned(args.a.shape[0])};
  launch(launcher, grid, kThreads, 0, join_kernel<Unit>,
         reinterpret_cast<const Unit*>(args.a.f32()), left,
         reinterpret_cast<const Unit*>(args.b.f32()), right,
         reinterpret_cast<Unit*>(args.out.f32()));
}

}  // namespace

void CudaOps::gated_mul(const GatedMulArgs& args) {
  check_shapes(args);
  const GatedMulParams params{.gate = args.gate.f32(),
                              .up = args.up.f32() + args.first_column,
                              .out = args.out.f32(),
                              .count = args.gate.count(),
                              .width = args.gate.shape[1],
                              .up_width = args.up.shape[1],
                              .gelu = args.activation == Activation::gelu_tanh};
  if (params.count == 0) return;
  const bool quads = params.up_width % kQuad == 0 &&
                     rows_of_quads(params.width, {params.gate, params.up, params.out});
  const int64_t per_block = kThreads * (quads ? kQuad : 1);
  launch(launcher_, unsigned((params.count + per_block - 1) / per_block), kThreads, 0,
         quads ? gated_mul_kernel<true> : gated_mul_kernel<false>, params);
}

void CudaOps::soft_cap(const SoftCapArgs& args) {
  check_shapes(args);
  const int64_t count = args.x.count();
  if (count == 0) return;
  launch(launcher_, unsigned((count + kThreads - 1) / kThreads), kThreads, 0, soft_cap_kernel,
         args.x.f32(), count, args.cap);
}

void CudaOps::join(const JoinArgs& args) {
  check_shapes(args);
  if (args.a.shape[0] == 0) return;
  const bool quads = rows_of_quads(args.a.shape[1], {args.a.data, args.out.data}) &&
                     rows_of_quads(args.b.shape[1], {args.b.data});
  if (quads)
    launch_join<float4>(launcher_, args);
  else
    launch_join<float>(launcher_, args);
}

}  // namespace slip
