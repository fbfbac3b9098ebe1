#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kThreads = 256;

// A block per kThreads values of x, [heads of all rows, dim].
__global__ void gate_heads_kernel(float* x, const float* q_and_gate, int64_t values, int64_t dim) {
  let_next_begin();
  wait_for_inputs();
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= values) return;
  const int64_t head = i / dim;
  x[i] *= sigmoid(q_and_gate[i + (head + 1) * dim]);
}

// The same, rounded for the projection that follows; a warp per slab of a row.
template <RowForm kForm>
__global__ void round_gated_kernel(const float* x, const float* q_and_gate, int rows, int slabs,
                                   int slabs_of_head, std::byte* rounded) {
  let_next_begin();
  wait_for_inputs();
  const int index = int(blockIdx.x) * (kThreads / kWarp) + int(threadIdx.x) / kWarp;
  if (index >= rows * slabs) return;
  const int64_t head = index / slabs_of_head, dim = int64_t(slabs_of_head) * kSlabIn;
  const int64_t i = int64_t(index) * kSlabIn + int(threadIdx.x) % kWarp * kQuad;
  const float4 value = *reinterpret_cast<const float4*>(x + i);
  const float4 gate = *reinterpret_cast<const float4*>(q_and_gate + i + (head + 1) * dim);
  const float4 gated = make_float4(value.x * sigmoid(gate.x), value.y * sigmoid(gate.y),
                                   value.z * sigmoid(gate.z), value.w * sigmoid(gate.w));
  gemv::round_to<kForm>(rounded, gated, index / slabs, rows, index % slabs, slabs);
}

}  // namespace

void CudaOps::gate_heads(const GateHeadsArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t values = args.x.count();
  if (values == 0) return;
  launch(launcher_, unsigned((values + kThreads - 1) / kThreads), kThreads, 0, gate_heads_kernel,
         args.x.f32(), args.q_and_gate.f32(), values, dims["dim"]);
}

void CudaOps::gate_heads_linear(const GateHeadsLinearArgs& args) {
  const Dims dims = check_shapes(args.gating());
  check_shapes(args.projection());
  const int64_t rows = args.x.shape[0], dim = dims["dim"];
  const LinearJobs slabs = LinearJobs::of_slabs(device_weight(args.weight), args.out.f32());
  LinearInput input{.x = args.x.f32(), .rows = rows, .in = args.weight.info.in, .quads = true};
  const std::optional<RowForm> form = linear_takes_rounded(launcher_, input, slabs);
  if (dim % kSlabIn != 0 || !rows_of_quads(dim, {args.x.data, args.q_and_gate.data}) || !form)
    return Ops::gate_heads_linear(args);
  std::byte* rounded = linear_scratch(input, slabs);
  const auto count = int(input.in / kSlabIn);
  constexpr int64_t kWarps = kThreads / kWarp;
  const auto kernel = *form == RowForm::integers ? round_gated_kernel<RowForm::integers>
                                                 : round_gated_kernel<RowForm::halves>;
  launch(launcher_, unsigned((rows * count + kWarps - 1) / kWarps), kThreads, 0, kernel,
         args.x.f32(), args.q_and_gate.f32(), int(rows), count, int(dim / kSlabIn), rounded);
  input.rounded = rounded;
  linear_few_rows(launcher_, input, {}, slabs, {}, true);
}

}  // namespace slip
