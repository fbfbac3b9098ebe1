// Dense MLPs of few rows. What every block of a projection would round for itself is rounded once,
// by the kernel that has it at hand.
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kRoundThreads = 256;

struct RoundParams {
  const float* x;   // [rows, slabs * kSlabIn]
  const float* up;  // the same; null: x as it is
  std::byte* rounded;
  int rows, slabs;
  bool gelu;
};

// x, or activation(x) * up, as the projection that follows takes it; a warp per slab of a row.
template <bool kGated>
__global__ void round_kernel(const __grid_constant__ RoundParams p) {
  let_next_begin();
  wait_for_inputs();
  const int index = int(blockIdx.x) * (kRoundThreads / kWarp) + int(threadIdx.x) / kWarp;
  if (index >= p.rows * p.slabs) return;
  const int64_t i = int64_t(index) * kSlabIn + int(threadIdx.x) % kWarp * kQuad;
  float4 x = *reinterpret_cast<const float4*>(p.x + i);
  if constexpr (kGated) {
    const float4 up = *reinterpret_cast<const float4*>(p.up + i);
    x = make_float4(activated(x.x, p.gelu) * up.x, activated(x.y, p.gelu) * up.y,
                    activated(x.z, p.gelu) * up.z, activated(x.w, p.gelu) * up.w);
  }
  gemv::rounded_rows(p.rounded, p.rows, p.slabs).round<true>(x, index / p.slabs, index % p.slabs);
}

void launch_round(const Launcher& launcher, const RoundParams& params) {
  constexpr int kWarps = kRoundThreads / kWarp;
  launch(launcher, unsigned((params.rows * params.slabs + kWarps - 1) / kWarps), kRoundThreads, 0,
         params.up ? round_kernel<true> : round_kernel<false>, params);
}

}  // namespace

// Gate and up: one row is rounded by every block while its weights are on their way; several are
// better rounded once.
void CudaOps::gate_and_up(const View& x, const LinearOutput& gate, const LinearOutput& up) {
  LinearJobs slabs;
  for (const LinearOutput& output : {gate, up})
    if (in_slabs(output.weight.info.format))
      slabs.add(device_weight(output.weight), output.out.f32(), tile_count(output.weight.info.out));
  LinearInput input{.x = x.f32(), .rows = x.shape[0], .in = x.shape[1], .quads = true};
  if (input.rows == 1 || slabs.count < 2 || !rows_of_quads(input.in, {input.x}) ||
      !linear_takes_rounded(launcher_, input, slabs)) {
    const LinearOutput outputs[] = {gate, up};
    return linears({.x = x, .outputs = outputs});
  }
  std::byte* rounded = linear_scratch(input, slabs);
  launch_round(launcher_, {.x = input.x,
                           .up = nullptr,
                           .rounded = rounded,
                           .rows = int(input.rows),
                           .slabs = int(slab_count(input.in)),
                           .gelu = false});
  input.rounded = rounded;
  linear_few_rows(launcher_, input, {}, slabs, {}, false);
}

void CudaOps::gated_mlp(const GatedMlpArgs& args) {
  check_shapes(args);
  const int64_t rows = args.x.shape[0], width = args.mlp.gate.info.out;
  const View gate{args.scratch.data, DType::f32, {rows, width}};
  const View up{args.scratch.data + gate.bytes(), DType::f32, {rows, width}};
  const LinearJobs down = LinearJobs::of_slabs(device_weight(args.mlp.down), args.out.f32());
  LinearInput mixed{.x = gate.f32(), .rows = rows, .in = width, .quads = true};
  if (!rows_of_quads(width, {gate.data, up.data}) || !linear_takes_rounded(launcher_, mixed, down))
    return Ops::gated_mlp(args);
  gate_and_up(args.x, {args.mlp.gate, gate}, {args.mlp.up, up});
  std::byte* rounded = linear_scratch(mixed, down);
  launch_round(launcher_, {.x = gate.f32(),
                           .up = up.f32(),
                           .rounded = rounded,
                           .rows = int(rows),
                           .slabs = int(slab_count(width)),
                           .gelu = args.activation == Activation::gelu_tanh});
  mixed.rounded = rounded;
  linear_few_rows(launcher_, mixed, {}, down, {}, args.add);
}

}  // namespace slip
