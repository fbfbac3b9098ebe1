#include "kernels/cuda/device_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/cuda/device/launch.h"

namespace slip {
namespace {

// What the host keeps for itself where the GPU has no memory of its own.
constexpr uint64_t kHostReserve = uint64_t{4} << 30;

}  // namespace

std::byte* PinnedMemory::allocate(size_t bytes, Pages) {
  void* data = nullptr;
  if (cudaMallocHost(&data, bytes) != cudaSuccess) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  std::memset(data, 0, bytes);
  return static_cast<std::byte*>(data);
}

void PinnedMemory::release(std::byte* data, size_t) noexcept { cudaFreeHost(data); }

void PinnedMemory::copy(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

void PinnedMemory::clear(std::byte* data, size_t bytes) { std::memset(data, 0, bytes); }

void PinnedMemory::upload(std::byte* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

void PinnedMemory::download(void* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

DeviceMemory::DeviceMemory(const Launcher& launcher)
    : device_(launcher.device), stream_(launcher.stream) {
  pinned_ = pinned_memory_.allocate(2 * kPinnedHalf, Pages::normal);
  for (cudaEvent_t& event : half_read_)
    cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  int integrated = 0;
  cuda_check(cudaDeviceGetAttribute(&integrated, cudaDevAttrIntegrated, device_));
  taken_from_host_ = integrated != 0;
}

DeviceMemory::~DeviceMemory() {
  for (const cudaEvent_t event : half_read_) cudaEventDestroy(event);
  pinned_memory_.release(pinned_, 2 * kPinnedHalf);
}

uint64_t DeviceMemory::free_bytes() const {
  if (taken_from_host_) {  // the driver counts the page cache as taken
    const uint64_t free = host_memory().free_bytes();
    return free > kHostReserve ? free - kHostReserve : 0;
  }
  use_device(device_);
  size_t free = 0, total = 0;
  cuda_check(cudaMemGetInfo(&free, &total));
  return free;
}

std::byte* DeviceMemory::allocate(size_t bytes, Pages) {
  use_device(device_);
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) != cudaSuccess) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  cuda_check(cudaMemsetAsync(data, 0, bytes, stream_));
  return static_cast<std::byte*>(data);
}

void DeviceMemory::release(std::byte* data, size_t) noexcept {
  cudaStreamSynchronize(stream_);
  cudaFree(data);
}

void DeviceMemory::copy(std::byte* to, const std::byte* from, size_t bytes) {
  cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
}

void DeviceMemory::clear(std::byte* data, size_t bytes) {
  cuda_check(cudaMemsetAsync(data, 0, bytes, stream_));
}

void DeviceMemory::upload(std::byte* to, const void* from, size_t bytes) {
  const auto* data = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    if (used_ == 2 * kPinnedHalf) used_ = 0;
    const size_t half = used_ / kPinnedHalf, offset = used_ % kPinnedHalf;
    if (offset == 0) cuda_check(cudaEventSynchronize(half_read_[half]));
    const size_t part = std::min(bytes, kPinnedHalf - offset);
    std::memcpy(pinned_ + used_, data, part);
    cuda_check(cudaMemcpyAsync(to, pinned_ + used_, part, cudaMemcpyHostToDevice, stream_));
    // Kept aligned, and the half is over before it is quite full.
    used_ += (part + 255) / 256 * 256;
    if (used_ % kPinnedHalf == 0) cuda_check(cudaEventRecord(half_read_[half], stream_));
    to += part;
    data += part;
    bytes -= part;
  }
}

void DeviceMemory::download(void* to, const std::byte* from, size_t bytes) {
  cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
  wait();
}

void DeviceMemory::wait() { cuda_check(cudaStreamSynchronize(stream_)); }

}  // namespace slip
