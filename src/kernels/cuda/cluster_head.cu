// A head in clusters: 4,096 rows of 262,144 for each row of x, wherever they lie. So little that
// its values are read one by one.
#include <cfloat>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/weight_values.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kThreads = 256;
constexpr int kAtOnce = 4;  // outputs of a warp
constexpr int kPerBlock = kThreads / kWarp * kAtOnce;
constexpr int kFillThreads = 512, kFillBlocks = 64;  // of a row

struct ClusterParams {
  const float* x;               // [rows, in]
  const int32_t* chosen;        // [rows, top_k]
  const DeviceWeight* weights;  // of clusters
  const int32_t* tokens;        // [clusters, size]
  float* logits;                // [rows, top_k, size]
  float* out;                   // [rows, vocabulary]
  int64_t in, top_k, size, vocabulary;
};

// Block (rank, row, part of the cluster), kAtOnce outputs of which a warp computes side by side.
template <bool kSlabs>
__global__ void cluster_logits_kernel(const __grid_constant__ ClusterParams p) {
  let_next_begin();
  wait_for_inputs();
  const int64_t row = blockIdx.y, at = row * p.top_k + blockIdx.x;
  const DeviceWeight weight = p.weights[p.chosen[at]];
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t first = int64_t(blockIdx.z) * kPerBlock + int(threadIdx.x) / kWarp * kAtOnce;
  if (first >= p.size) return;
  const float* x = p.x + row * p.in;
  float sums[kAtOnce] = {};
#pragma unroll 4
  for (int64_t i = lane; i < p.in; i += kWarp)
#pragma unroll
    for (int o = 0; o < kAtOnce; ++o) {
      const int64_t output = min(first + o, p.size - 1);
      sums[o] = fmaf(kSlabs ? slab_value(weight, output, i) : float_value(weight, output, i), x[i],
                     sums[o]);
    }
#pragma unroll
  for (int o = 0; o < kAtOnce; ++o) {
    const float sum = warp_sum(sums[o]);
    if (lane == 0 && first + o < p.size) p.logits[at * p.size + first + o] = sum;
  }
}

// Block (part of the vocabulary, row): everything that was not asked gets the least of what was,
// minus 1.
__global__ void __launch_bounds__(kFillThreads)
    spread_logits_kernel(const __grid_constant__ ClusterParams p) {
  __shared__ float least_of[kFillThreads / kWarp];
  let_next_begin();
  wait_for_inputs();
  const int64_t row = blockIdx.y;
  const int size = int(p.size), asked = int(p.top_k) * size;
  const int64_t begin = p.vocabulary * blockIdx.x / gridDim.x,
                end = p.vocabulary * (blockIdx.x + 1) / gridDim.x;
  const float* logits = p.logits + row * asked;
  const int32_t* chosen = p.chosen + row * p.top_k;
  float* out = p.out + row * p.vocabulary;
  float least = FLT_MAX;
#pragma unroll 4
  for (int i = int(threadIdx.x); i < asked; i += kFillThreads) least = fminf(least, logits[i]);
  least = -warp_max(-least);
  if (threadIdx.x % kWarp == 0) least_of[threadIdx.x / kWarp] = least;
  __syncthreads();
  for (int i = 0; i < kFillThreads / kWarp; ++i) least = fminf(least, least_of[i]);
  for (int64_t i = begin + threadIdx.x; i < end; i += kFillThreads) out[i] = least - 1;
  __syncthreads();
#pragma unroll 4
  for (int i = int(threadIdx.x); i < asked; i += kFillThreads) {
    const int32_t token = p.tokens[int64_t(chosen[i / size]) * size + i % size];
    if (token >= begin && token < end) out[token] = logits[i];
  }
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
                             .vocabulary = dims["vocabulary"]};
  const dim3 blocks{unsigned(params.top_k), unsigned(rows),
                    unsigned((params.size + kPerBlock - 1) / kPerBlock)};
  launch(launcher_, blocks, kThreads, 0,
         in_slabs(device_format(args.clusters[0].info)) ? cluster_logits_kernel<true>
                                                        : cluster_logits_kernel<false>,
         params);
  launch(launcher_, dim3(kFillBlocks, unsigned(rows)), kFillThreads, 0, spread_logits_kernel,
         params);
}

}  // namespace slip
