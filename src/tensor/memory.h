// Memory: where the bytes of tensors lie, and how they get there and back. The host's is always
// there; a backend that computes elsewhere brings its own (Ops::memory).
#pragma once

#include <cstddef>
#include <cstdint>

namespace slip {

// Huge pages make long streams (weights, keys and values) faster, and cost 2 MB of zeroing each
// when first touched; scratch of which a step may use a corner is better off without.
enum class Pages : uint8_t { normal, huge };

class Memory {
 public:
  virtual ~Memory() = default;

  // Zeroed, aligned to 256 bytes or more. Throws std::bad_alloc when there is no room.
  virtual std::byte* allocate(size_t bytes, Pages pages) = 0;
  virtual void release(std::byte* data, size_t bytes) noexcept = 0;

  // In the order of the operations around them. upload() and download() return when `from` may
  // change and `to` may be read.
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;  // both in here
  virtual void clear(std::byte* data, size_t bytes) = 0;
  virtual void upload(std::byte* to, const void* from, size_t bytes) = 0;
  virtual void download(void* to, const std::byte* from, size_t bytes) = 0;

  // Whether the host may read and write these bytes itself, at any time between operations.
  virtual bool on_host() const = 0;

  // Whether a GPU takes this from the host's memory, having none of its own.
  virtual bool is_taken_from_host() const { return false; }

  // Bytes that could be allocated now without pushing anything out.
  virtual uint64_t free_bytes() const = 0;

  // Returns when all operations before it are done.
  virtual void wait() {}

  // Host memory that is copied from and to here at full speed, and that operations can write to.
  virtual Memory& staging() { return *this; }
};

Memory& host_memory();

}  // namespace slip
