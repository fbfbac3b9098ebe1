#include "kernels/cuda/choice.cuh"
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kRowsPerBlock = 4;
constexpr int64_t kMostRouted = 2048;  // clusters of a head are chosen like experts

template <int kPerLane>
__global__ void __launch_bounds__(kRowsPerBlock* kWarp)
    route_kernel(const float* logits, int rows, int experts, int top_k, bool quads, int32_t* ids,
                 float* weights, const float* scales) {
  let_next_begin();
  wait_for_inputs();
  const int row = int(blockIdx.x) * kRowsPerBlock + int(threadIdx.x) / kWarp;
  if (row >= rows) return;
  const Choice<kPerLane> choice(logits + int64_t(row) * experts, experts, top_k, quads);
  const float weight = choice.weight(top_k, scales);
  const int lane = int(threadIdx.x) % kWarp;
  if (lane >= top_k) return;
  ids[int64_t(row) * top_k + lane] = choice.expert;
  weights[int64_t(row) * top_k + lane] = weight;
}

}  // namespace

void CudaOps::route(const RouteArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], experts = dims["experts"], top_k = dims["top_k"];
  check(experts <= kMostRouted && top_k <= kWarp, "route: top ", top_k, " of ", experts,
        "; the most are ", kWarp, " of ", kMostRouted);
  if (rows == 0) return;
  const auto run = [&](auto kernel) {
    launch(launcher_, unsigned((rows + kRowsPerBlock - 1) / kRowsPerBlock), kRowsPerBlock * kWarp,
           0, kernel, args.logits.f32(), int(rows), int(experts), int(top_k),
           rows_of_quads(experts, {args.logits.f32()}), args.ids.i32(), args.weights.f32(),
           args.scales.empty() ? nullptr : args.scales.f32());
  };
  if (experts <= 8 * kWarp)
    run(route_kernel<8>);
  else if (experts <= 16 * kWarp)
    run(route_kernel<16>);
  else
    run(route_kernel<kMostRouted / kWarp>);
}

}  // namespace slip
