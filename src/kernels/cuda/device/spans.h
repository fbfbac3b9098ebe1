// Spans as kernels read them: everything that changes from step to step lies in device memory, so
// that a recorded step can be replayed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace slip {

struct DeviceSpan {
  int64_t start;
  int32_t first_row;
  int32_t rows;
  int32_t state_slot;
  int32_t record;  // 0 or 1
  int32_t replay;
  int32_t record_side;
  const int32_t* pages;  // device

  // The page of positions [index * page_len, ...): one of the sequence's ring, if there is one.
  __device__ int64_t page(int64_t index, int ring_pages) const {
    return ring_pages > 0 ? int64_t(state_slot) * ring_pages + index % ring_pages : pages[index];
  }
};

}  // namespace slip
