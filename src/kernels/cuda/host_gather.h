// Rows of a table that stays in host memory, on their way to the device. Ids go to the host, rows
// come back; all of it waits in the stream, so that a step with it can be recorded.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "quant/weight.h"

namespace slip {

// For one table, and one number of rows in steps that are recorded: what a recording refers to must
// stay as it is.
class HostGather {
 public:
  HostGather() = default;
  ~HostGather();
  HostGather(const HostGather&) = delete;
  HostGather& operator=(const HostGather&) = delete;

  // On the device, rows padded to padded_row_bytes().
  const std::byte* fetch(cudaStream_t stream, const Weight& table, const int32_t* ids,
                         int64_t rows);

 private:
  struct Work {
    const std::byte* table = nullptr;
    size_t row_bytes = 0, padded_bytes = 0;
    int64_t rows = 0;

    bool operator==(const Work&) const = default;
  };
  static void copy_rows(void* gather);
  void begin(cudaStream_t stream, const Work& work);

  Work work_;
  std::byte* pinned_ = nullptr;  // rows, then ids
  std::byte* device_ = nullptr;
  size_t capacity_ = 0;
};

}  // namespace slip
