// The host's memory, of which every byte is counted, and which may be said to be short.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "tensor/memory.h"

namespace slip {

class CountingMemory final : public Memory {
 public:
  std::byte* allocate(size_t bytes, Pages pages) override {
    if (taken_ + bytes > there_) throw std::bad_alloc();
    taken_ += bytes;
    return host_memory().allocate(bytes, pages);
  }
  void release(std::byte* data, size_t bytes) noexcept override {
    taken_ -= bytes;
    host_memory().release(data, bytes);
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    host_memory().copy(to, from, bytes);
  }
  void clear(std::byte* data, size_t bytes) override { host_memory().clear(data, bytes); }
  void upload(std::byte* to, const void* from, size_t bytes) override {
    host_memory().upload(to, from, bytes);
  }
  void download(void* to, const std::byte* from, size_t bytes) override {
    host_memory().download(to, from, bytes);
  }
  bool on_host() const override { return true; }
  uint64_t free_bytes() const override { return host_memory().free_bytes(); }

  uint64_t taken() const { return taken_; }
  void have(uint64_t bytes) { there_ = bytes; }

 private:
  uint64_t there_ = UINT64_MAX;
  std::atomic<uint64_t> taken_{0};
};

}  // namespace slip
