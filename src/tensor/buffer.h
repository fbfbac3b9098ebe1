// Buffer: owns bytes of one memory. Moves, never copies.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/memory.h"
#include "tensor/view.h"

namespace slip {

class Buffer {
 public:
  Buffer() = default;
  // Zeroed. The memory must outlive it.
  Buffer(Memory& memory, size_t bytes, Pages pages = Pages::normal);
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
  Memory* memory_ = nullptr;
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
  Tensor(Memory& memory, DType dtype, const Shape& shape)
      : buffer(memory, size_t(shape.count()) * bytes_per_value(dtype)),
        view(buffer.view(dtype, shape)) {}

  Buffer buffer;
  View view;
};

}  // namespace slip
