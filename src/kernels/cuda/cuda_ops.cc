#include "kernels/cuda_ops.h"

#include <algorithm>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/candidates.h"
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device_code.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/peaks.h"
#include "kernels/dims.h"

namespace slip {

CudaOps::CudaOps(int device) {
  launcher_.device = device;
  use_device(device);
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device));
  launcher_.multiprocessors = properties.multiProcessorCount;
  launcher_.shared_bytes = int(properties.sharedMemPerBlockOptin);
  cuda_check(cudaStreamCreateWithFlags(&launcher_.stream, cudaStreamNonBlocking));
  memory_ = std::make_unique<DeviceMemory>(launcher_);
  graphs_ = std::make_unique<StepGraphs>(launcher_, *memory_);
  counters_ = Buffer(*memory_, kCounters * sizeof(uint32_t));
}

CudaOps::~CudaOps() {
  graphs_.reset();
  scratch_ = Buffer();
  counters_ = Buffer();
  memory_.reset();
  cudaStreamDestroy(launcher_.stream);
}

void CudaOps::run_step(const StepKey& key, std::span<const Span> spans, const StepBody& body) {
  packer_.release();  // whoever computes has loaded
  graphs_->run(key, spans, body);
}

const DeviceSpan* CudaOps::spans_on_device(std::span<const Span> spans) {
  if (const DeviceSpan* table = graphs_->table_of(spans)) return table;
  return graphs_->upload(spans);
}

int64_t CudaOps::context_to_cover(std::span<const Span> spans) const {
  int64_t longest = graphs_->recorded_context();
  for (const Span& span : spans) longest = std::max(longest, span.start + span.rows);
  return longest;
}

namespace {

// Of steps: sequences, each with as many passes of drafts as it may have one after the other.
constexpr int64_t kMostSpans = int64_t{64} * 8;

int64_t most_pages(const StepLimits& limits) {
  constexpr int64_t kPositionsPerPage = 64;
  return kMostSpans * ((limits.context + kPositionsPerPage - 1) / kPositionsPerPage);
}

}  // namespace

size_t CudaOps::scratch_bytes(const StepLimits& limits) const {
  return largest_scratch(limits) + StepGraphs::table_bytes(kMostSpans, most_pages(limits));
}

size_t CudaOps::largest_scratch(const StepLimits& limits) const {
  // Rows that come rounded, and sums of parts: what has wide inputs ends in the residual.
  check(linear_parts(limits.hidden) == 1, "a hidden state of ", limits.hidden,
        ": outputs of other layers are not reserved for");
  const int64_t few_rows = std::min(limits.rows, kFewRows);
  const size_t few_rows_bytes =
      linear_rounded_bytes(few_rows, limits.widest_input) +
      part_sums_bytes(few_rows, limits.widest_input, tile_count(limits.hidden));
  return std::max({experts_scratch_bytes(limits), attention_scratch_bytes(limits),
                   limits.rows > kFewRows ? rounded_rows_bytes(limits.rows, limits.widest_input) +
                                                many_rows_sums_bytes(launcher_)
                                          : 0,
                   few_rows_bytes, peaks_scratch_bytes(), candidates_scratch_bytes()});
}

void CudaOps::reserve(const StepLimits& limits) {
  graphs_->reserve(kMostSpans, most_pages(limits));
  scratch(largest_scratch(limits));
}

std::byte* CudaOps::scratch(size_t bytes) {
  if (scratch_.size() < bytes) {
    cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
    cuda_check(cudaStreamIsCapturing(launcher_.stream, &recording));
    check(recording == cudaStreamCaptureStatusNone, "scratch of ", bytes,
          " bytes was not reserved, there are ", scratch_.size());
    graphs_->forget_all();  // they name what is here
    scratch_ = Buffer();
    scratch_ = Buffer(*memory_, bytes);
  }
  return scratch_.data();
}

Result<std::unique_ptr<Ops>> make_cuda_ops(int device) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return error("no usable NVIDIA driver");
  }
  if (device < 0 || device >= count)
    return error("GPU ", device, ": this machine has ", count, count == 1 ? " GPU" : " GPUs",
                 ", numbered from 0");
  cudaDeviceProp properties{};
  use_device(device);
  cuda_check(cudaGetDeviceProperties(&properties, device));
  if (!has_code_for_device())
    return error(properties.name, " has compute capability ", properties.major, ".",
                 properties.minor, ", which this program was not built for");
  return std::unique_ptr<Ops>(std::make_unique<CudaOps>(device));
}

std::string describe_cuda_device(int device) {
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device));
  return cat("cuda:", device, " (", properties.name, ")");
}

}  // namespace slip
