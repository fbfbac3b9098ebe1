// Numbers that are none, in weights of 16 or 32 bits: one of them makes an answer nonsense, and
// nothing after the load would say so.
#pragma once

#include <optional>

#include "quant/weight.h"

namespace slip {

// The index of the first infinity or NaN among `values`, which are bf16, f16 or f32.
std::optional<int64_t> first_not_finite(const View& values);

}  // namespace slip
