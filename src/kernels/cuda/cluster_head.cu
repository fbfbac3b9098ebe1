// A head in clusters: 4,096 rows of 262,144 for each row of x, wherever they lie. So little that
// its values are read one by one.
#include <cfloat>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/weight_values.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kThreads = 256;
constexpr int kFillThreads = 1024;

struct ClusterParams {
  const float* x;               // [rows, in]
  const int32_t* chosen;        // [rows, top_k]
  const DeviceWeight* weights;  // of clusters
  const int32_t* tokens;        // [clusters, size]
  float* logits;                // [rows, top_k, size]
  float* out;                   // [rows, vocabulary]
  int64_t in, top_k, size, vocabulary;
  bool slabs;
};

// Block (rank, row), a warp per output.
__global__ void cluster_logits_kernel(const __grid_constant__ ClusterParams p) {
  let_next_begin();
  wait_for_inputs();
  const int64_t row = blockIdx.y, at = row * p.top_k + blockIdx.x;
  const DeviceWeight& weight = p.weights[p.chosen[at]];
  const int lane = int(threadIdx.x) % kWarp;
  for (int64_t o = int(threadIdx.x) / kWarp; o < p.size; o += kThreads / kWarp) {
    float sum = 0;
    for (int64_t i = lane; i < p.in; i += kWarp)
      sum = fmaf(p.slabs ? slab_value(weight, o, i) : float_value(weight, o, i),
                 p.x[row * p.in + i], sum);
    sum = warp_sum(sum);
    if (lane == 0) p.logits[at * p.size + o] = sum;
  }
}

// Block per row: everything that was not asked gets the least of what was, minus 1.
__global__ void spread_logits_kernel(const __grid_constant__ ClusterParams p) {
  __shared__ float least_of[kWarp];
  let_next_begin();
  wait_for_inputs();
  const int64_t row = blockIdx.x, asked = p.top_k * p.size;
  const float* logits = p.logits + row * asked;
  float* out = p.out + row * p.vocabulary;
  float least = FLT_MAX;
  for (int64_t i = threadIdx.x; i < asked; i += kFillThreads) least = fminf(least, logits[i]);
  least = -warp_max(-least);
  if (threadIdx.x % kWarp == 0) least_of[threadIdx.x / kWarp] = least;
  __syncthreads();
  for (int i = 0; i < kFillThreads / kWarp; ++i) least = fminf(least, least_of[i]);
  for (int64_t i = threadIdx.x; i < p.vocabulary; i += kFillThreads) out[i] = least - 1;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < asked; i += kFillThreads)
    out[p.tokens[p.chosen[row * p.top_k + i / p.size] * p.size + i % p.size]] = logits[i];
}

}  // namespace

const DeviceWeight* ClusterTables::of(std::span<const Weight> clusters, Memory& memory) {
  std::vector<DeviceWeight> now;
  for (const Weight& cluster : clusters) now.push_back(device_weight(cluster));
  Table& table = tables_[clusters.data()];
  if (table.host == now) return table.device.get();
  const size_t bytes = now.size() * sizeof(DeviceWeight);
  void* device = nullptr;
  cuda_check(cudaMalloc(&device, bytes));
  table.device.reset(static_cast<DeviceWeight*>(device));
  memory.upload(static_cast<std::byte*>(device), now.data(), bytes);
  table.host = std::move(now);
  return table.device.get();
}

void CudaOps::cluster_head(const ClusterHeadArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"];
  if (rows == 0) return;
  const ClusterParams params{.x = args.x.f32(),
                             .chosen = args.chosen.i32(),
                             .weights = cluster_tables_.of(args.clusters, *memory_),
                             .tokens = args.tokens.i32(),
                             .logits = args.scratch.f32(),
                             .out = args.out.f32(),
                             .in = args.x.shape[1],
                             .top_k = dims["top_k"],
                             .size = dims["cluster_size"],
                             .vocabulary = dims["vocabulary"],
                             .slabs = in_slabs(args.clusters[0].info.format)};
  launch(launcher_, dim3(unsigned(params.top_k), unsigned(rows)), kThreads, 0,
         cluster_logits_kernel, params);
  launch(launcher_, unsigned(rows), kFillThreads, 0, spread_logits_kernel, params);
}

}  // namespace slip
