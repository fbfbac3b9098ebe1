#include "tensor/buffer.h"

#include <utility>

namespace slip {

Buffer::Buffer(Memory& memory, size_t bytes, Pages pages) : memory_(&memory), size_(bytes) {
  check(!NoAllocScope::active(), "a Buffer of ", bytes, " bytes was made inside a step");
  if (bytes > 0) data_ = memory.allocate(bytes, pages);
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_) memory_->release(data_, size_);
}

View Buffer::view(DType dtype, const Shape& shape, size_t offset) const {
  const View result{data_ + offset, dtype, shape};
  check(offset + result.bytes() <= size_, "view of ", result.bytes(), " bytes at ", offset,
        " exceeds a buffer of ", size_);
  return result;
}

}  // namespace slip
