#include "kernels/cuda/host_gather.h"

#include <bit>
#include <cstring>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/weight_tiles.h"

namespace slip {

HostGather::~HostGather() {
  cudaFreeHost(pinned_);
  cudaFree(device_);
}

// On the host, in the stream's turn.
void HostGather::copy_rows(void* gather) {
  const auto& self = *static_cast<const HostGather*>(gather);
  const Work& work = self.work_;
  const auto* ids =
      reinterpret_cast<const int32_t*>(self.pinned_ + size_t(work.rows) * work.padded_bytes);
  for (int64_t row = 0; row < work.rows; ++row)
    std::memcpy(self.pinned_ + size_t(row) * work.padded_bytes,
                work.table + size_t(ids[row]) * work.row_bytes, work.row_bytes);
}

void HostGather::begin(cudaStream_t stream, const Work& work) {
  if (work == work_) return;
  // Never while a step is recorded: its first pass was not.
  cuda_check(cudaStreamSynchronize(stream));
  work_ = work;
  const size_t bytes = std::bit_ceil(size_t(work.rows) * (work.padded_bytes + sizeof(int32_t)));
  if (bytes <= capacity_) return;
  cuda_check(cudaFreeHost(pinned_));
  cuda_check(cudaFree(device_));
  void* pinned = nullptr;
  void* device = nullptr;
  cuda_check(cudaMallocHost(&pinned, bytes));
  cuda_check(cudaMalloc(&device, bytes));
  pinned_ = static_cast<std::byte*>(pinned);
  device_ = static_cast<std::byte*>(device);
  std::memset(pinned_, 0, bytes);
  capacity_ = bytes;
}

const std::byte* HostGather::fetch(cudaStream_t stream, const Weight& table, const int32_t* ids,
                                   int64_t rows) {
  begin(stream, {.table = table.values.data,
                 .row_bytes = table.values.bytes() / size_t(table.info.out),
                 .padded_bytes = padded_row_bytes(table.info),
                 .rows = rows});
  const size_t bytes = size_t(rows) * work_.padded_bytes;
  cuda_check(cudaMemcpyAsync(pinned_ + bytes, ids, size_t(rows) * sizeof(int32_t),
                             cudaMemcpyDeviceToHost, stream));
  cuda_check(cudaLaunchHostFunc(stream, copy_rows, this));
  cuda_check(cudaMemcpyAsync(device_, pinned_, bytes, cudaMemcpyHostToDevice, stream));
  return device_;
}

}  // namespace slip
