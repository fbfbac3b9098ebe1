#include "tensor/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "tensor/container_memory.h"

namespace slip {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

uint64_t available_on_machine() {
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  uint64_t kilobytes = 0;
  while (info >> key >> kilobytes) {
    std::getline(info, unit);
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

class HostMemory final : public Memory {
 public:
  // mmap gives zeroed pages lazily, so that a planned but unused cache costs no memory yet.
  std::byte* allocate(size_t bytes, Pages pages) override {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    if (pages == Pages::huge && bytes >= kHugePage) ::madvise(data, bytes, MADV_HUGEPAGE);
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data, size_t bytes) noexcept override { ::munmap(data, bytes); }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void clear(std::byte* data, size_t bytes) override { std::memset(data, 0, bytes); }
  void upload(std::byte* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const std::byte* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  bool on_host() const override { return true; }
  uint64_t free_bytes() const override {
    const uint64_t machine = available_on_machine();
    return std::min(machine, free_in_container().value_or(machine));
  }
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace slip
