// Dense MLPs of few rows. What every block of the down projection would round for itself is rounded
// once, by the kernel that has it at hand.
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quads.cuh"
#include "kernels/dims.h"

namespace slip {

void CudaOps::gated_mlp(const GatedMlpArgs& args) {
  check_shapes(args);
  const int64_t rows = args.x.shape[0], width = args.mlp.gate.info.out;
  const View gate{args.scratch.data, DType::f32, {rows, width}};
  const View up{args.scratch.data + gate.bytes(), DType::f32, {rows, width}};
  const LinearJobs down = LinearJobs::of_slabs(device_weight(args.mlp.down), args.out.f32());
  LinearInput mixed{.x = gate.f32(), .rows = rows, .in = width, .quads = true};
  const std::optional<RowForm> form = linear_takes_rounded(launcher_, mixed, down);
  if (!form) return Ops::gated_mlp(args);
  const LinearOutput gate_and_up[] = {{args.mlp.gate, gate}, {args.mlp.up, up}};
  linears({.x = args.x, .outputs = gate_and_up});
  const RoundedTo rounded{linear_scratch(mixed, down), *form};
  round_few_rows(launcher_, {.x = gate.f32(),
                             .up = up.f32(),
                             .rounded = rounded,
                             .rows = int(rows),
                             .slabs = int(slab_count(width)),
                             .quads = rows_of_quads(width, {gate.data, up.data}),
                             .gelu = args.activation == Activation::gelu_tanh});
  mixed.rounded = rounded.memory;
  linear_few_rows(launcher_, mixed, {}, down, {}, args.add);
}

}  // namespace slip
