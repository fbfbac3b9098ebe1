// The memory of one GPU, in the order of one stream.
#pragma once

#include "kernels/cuda/device/launch.h"
#include "tensor/memory.h"

namespace slip {

// Host memory that the device reads and writes by itself.
class PinnedMemory final : public Memory {
 public:
  std::byte* allocate(size_t bytes, Pages pages) override;
  void release(std::byte* data, size_t bytes) noexcept override;
  void copy(std::byte* to, const std::byte* from, size_t bytes) override;
  void clear(std::byte* data, size_t bytes) override;
  void upload(std::byte* to, const void* from, size_t bytes) override;
  void download(void* to, const std::byte* from, size_t bytes) override;
  bool on_host() const override { return true; }
  uint64_t free_bytes() const override { return host_memory().free_bytes(); }
};

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(const Launcher& launcher);
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* allocate(size_t bytes, Pages pages) override;
  void release(std::byte* data, size_t bytes) noexcept override;
  void copy(std::byte* to, const std::byte* from, size_t bytes) override;
  void clear(std::byte* data, size_t bytes) override;
  // Small ones go through pinned memory and do not wait for the device.
  void upload(std::byte* to, const void* from, size_t bytes) override;
  void download(void* to, const std::byte* from, size_t bytes) override;
  void wait() override;
  bool on_host() const override { return false; }
  bool is_taken_from_host() const override { return taken_from_host_; }
  uint64_t free_bytes() const override;
  Memory& staging() override { return pinned_memory_; }

 private:
  // Pinned memory is faster, and may be read by the device while the host goes on; a ring of it, in
  // halves: one is not reused before the device has read it.
  static constexpr size_t kPinnedHalf = size_t{1} << 20;

  int device_;
  cudaStream_t stream_;
  bool taken_from_host_ = false;
  PinnedMemory pinned_memory_;
  std::byte* pinned_ = nullptr;  // [2 * kPinnedHalf]
  cudaEvent_t half_read_[2] = {};
  size_t used_ = 0;
};

}  // namespace slip
