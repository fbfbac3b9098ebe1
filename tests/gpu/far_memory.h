// A memory that is not the host's, where there is no GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tensor/memory.h"
#include "tensor/view.h"

namespace slip {

// Host memory that knows what is its own, and counts what is brought to the host.
class FarMemory final : public Memory {
 public:
  std::byte* allocate(size_t bytes, Pages pages) override {
    std::byte* data = host_memory().allocate(bytes, pages);
    live_.push_back({data, bytes});
    return data;
  }
  void release(std::byte* data, size_t bytes) noexcept override {
    std::erase_if(live_, [&](std::span<std::byte> block) { return block.data() == data; });
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

  bool holds(const View& view) const {
    return std::ranges::any_of(live_, [&](std::span<std::byte> block) {
      return view.data >= block.data() && view.data + view.bytes() <= block.data() + block.size();
    });
  }
  size_t blocks() const { return live_.size(); }
  int64_t downloads() const { return downloads_; }

 private:
  std::vector<std::span<std::byte>> live_;
  int64_t downloads_ = 0;
};

}  // namespace slip
