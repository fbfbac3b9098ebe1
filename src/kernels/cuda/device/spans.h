// Spans as kernels read them: everything that changes from step to step lies in device memory, so
// that a recorded step can be replayed.
#pragma once

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
};

}  // namespace slip
