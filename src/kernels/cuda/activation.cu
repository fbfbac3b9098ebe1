#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/quads.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kThreads = 256;

template <bool kAligned>
__global__ void silu_mul_kernel(const float* gate, const float* up, float* out, int64_t count) {
  const int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * kQuad;
  let_next_begin();
  wait_for_inputs();
  const float4 g = load_quad<kAligned>(gate, i, count), u = load_quad<kAligned>(up, i, count);
  store_quad<kAligned>(
      out, i, count,
      make_float4(silu(g.x) * u.x, silu(g.y) * u.y, silu(g.z) * u.z, silu(g.w) * u.w));
}

// A block per row; Unit is float or float4.
template <class Unit>
__global__ void join_kernel(const Unit* a, int64_t left, const Unit* b, int64_t right, Unit* out) {
  a += blockIdx.x * left;
  b += blockIdx.x * right;
  out += blockIdx.x * (left + right);
  let_next_begin();
  wait_for_inputs();
  for (int64_t i = threadIdx.x; i < left + right; i += kThreads)
    out[i] = i < left ? a[i] : b[i - left];
}

template <class Unit>
void launch_join(const Launcher& launcher, const JoinArgs& args) {
  constexpr int64_t kValues = sizeof(Unit) / sizeof(float);
  launch(launcher, unsigned(args.a.shape[0]), kThreads, 0, join_kernel<Unit>,
         reinterpret_cast<const Unit*>(args.a.f32()), args.a.shape[1] / kValues,
         reinterpret_cast<const Unit*>(args.b.f32()), args.b.shape[1] / kValues,
         reinterpret_cast<Unit*>(args.out.f32()));
}

}  // namespace

void CudaOps::silu_mul(const SiluMulArgs& args) {
  check_shapes(args);
  const int64_t count = args.gate.count();
  if (count == 0) return;
  const float *gate = args.gate.f32(), *up = args.up.f32();
  float* out = args.out.f32();
  const auto kernel =
      rows_of_quads(count, {gate, up, out}) ? silu_mul_kernel<true> : silu_mul_kernel<false>;
  constexpr int64_t kPerBlock = kThreads * kQuad;
  launch(launcher_, unsigned((count + kPerBlock - 1) / kPerBlock), kThreads, 0, kernel, gate, up,
         out, count);
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
