// Rows of floats that the backend writes and the host reads. Where the backend computes in host
// memory these are the same bytes; elsewhere they are copied when they are first asked for, or, if
// they are few, written to the host's memory in the first place: a copy takes longer to begin.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/buffer.h"

namespace slip {

class HostRows {
 public:
  enum class Written : uint8_t { there, here };

  HostRows() = default;
  HostRows(Memory& memory, int64_t rows, int64_t width, Written written = Written::there);

  // [rows, width], where the backend writes.
  const View& view() const { return tensor_.view; }

  // The first `rows` rows were written anew.
  void changed(int64_t rows) { stale_ = memory_->on_host() ? 0 : rows; }

  std::span<float> row(int64_t index);

 private:
  Memory* memory_ = nullptr;
  Tensor tensor_;
  Tensor copy_;        // on the host; empty where it is not needed
  int64_t stale_ = 0;  // rows of the copy that are out of date
};

}  // namespace slip
