#include "tensor/buffer.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace slip {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// mmap gives zeroed pages lazily, so that a planned but unused cache costs no memory yet.
std::byte* map_pages(size_t bytes, Pages pages) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  if (pages == Pages::huge && bytes >= kHugePage) ::madvise(data, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

}  // namespace

Buffer::Buffer(Device device, size_t bytes, Pages pages) : size_(bytes) {
  check(device == Device::cpu, "Buffer: unknown device");
  check(!NoAllocScope::active(), "a Buffer of ", bytes, " bytes was made inside a step");
  if (bytes > 0) data_ = map_pages(bytes, pages);
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_) ::munmap(data_, size_);
}

View Buffer::view(DType dtype, const Shape& shape, size_t offset) const {
  const View result{data_ + offset, dtype, shape};
  check(offset + result.bytes() <= size_, "view of ", result.bytes(), " bytes at ", offset,
        " exceeds a buffer of ", size_);
  return result;
}

}  // namespace slip
