// Buffer: owns bytes on one device. Moves, never copies.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/view.h"

namespace slip {

enum class Device : uint8_t { cpu };

// Huge pages make long streams (weights, keys and values) faster, and cost 2 MB of zeroing each
// when first touched; scratch of which a step may use a corner is better off without.
enum class Pages : uint8_t { normal, huge };

class Buffer {
 public:
  Buffer() = default;
  // Zeroed, aligned to a page.
  Buffer(Device device, size_t bytes, Pages pages = Pages::normal);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  size_t size() const { return size_; }
  std::byte* data() const { return data_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }

  // A typed window that starts at `offset`; checked against the size.
  View view(DType dtype, const Shape& shape, size_t offset = 0) const;

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// While one exists on a thread, making a Buffer there is a bug: a decode step allocates nothing.
class NoAllocScope {
 public:
  NoAllocScope() { ++depth_; }
  ~NoAllocScope() { --depth_; }
  NoAllocScope(const NoAllocScope&) = delete;
  NoAllocScope& operator=(const NoAllocScope&) = delete;
  static bool active() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

// Allocation of a typed tensor of its own.
struct Tensor {
  Tensor() = default;
  Tensor(Device device, DType dtype, const Shape& shape)
      : buffer(device, size_t(shape.count()) * bytes_per_value(dtype)),
        view(buffer.view(dtype, shape)) {}

  Buffer buffer;
  View view;
};

}  // namespace slip
