// Backends that compute on the host and say that they do not, so that what the engine does for a
// GPU can be tested without one.
#pragma once

#include <cstring>

#include "kernels/ops.h"

namespace slip {

// Counts what is brought from it to the host.
class ElsewhereMemory final : public Memory {
 public:
  std::byte* allocate(size_t bytes, Pages pages) override {
    return host_memory().allocate(bytes, pages);
  }
  void release(std::byte* data, size_t bytes) noexcept override {
    host_memory().release(data, bytes);
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void clear(std::byte* data, size_t bytes) override { std::memset(data, 0, bytes); }
  void upload(std::byte* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const std::byte* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    ++downloads_;
  }
  bool on_host() const override { return false; }
  uint64_t free_bytes() const override { return host_memory().free_bytes(); }

  int64_t downloads() const { return downloads_; }

 private:
  int64_t downloads_ = 0;
};

template <class Backend>
class Elsewhere final : public Backend {
 public:
  using Backend::Backend;
  Memory& memory() const override { return memory_; }
  int64_t downloads() const { return memory_.downloads(); }

 private:
  mutable ElsewhereMemory memory_;
};

}  // namespace slip
