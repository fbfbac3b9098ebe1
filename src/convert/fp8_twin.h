// Whether FP8 bytes are what they claim: finite, and the same matrix as the 16-bit one they are to
// replace. A checkpoint of another fine-tune has the same names and shapes.
#pragma once

#include <span>

#include "convert/hybrid_plan.h"

namespace slip {

struct Fp8Bytes {
  const Replacement& described;
  std::span<const std::byte> weight, scales;
};

Status check_fp8_twin(const StoredTensor& original, const Fp8Bytes& fp8);

}  // namespace slip
