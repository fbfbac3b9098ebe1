#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"
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

}  // namespace

void CudaOps::gate_heads(const GateHeadsArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t values = args.x.count();
  if (values == 0) return;
  launch(launcher_, unsigned((values + kThreads - 1) / kThreads), kThreads, 0, gate_heads_kernel,
         args.x.f32(), args.q_and_gate.f32(), values, dims["dim"]);
}

}  // namespace slip
