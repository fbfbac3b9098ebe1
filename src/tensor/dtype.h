// Number types of tensors at run time. What a checkpoint file may hold is checkpoint/stored_type.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace slip {

enum class DType : uint8_t { f32, bf16, f16, fp8_e4m3, i8, u8, i32 };

constexpr size_t bytes_per_value(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::fp8_e4m3:
    case DType::i8:
    case DType::u8: return 1;
  }
  unreachable("DType");
}

constexpr const char* name_of(DType type) {
  switch (type) {
    case DType::f32: return "f32";
    case DType::i32: return "i32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::fp8_e4m3: return "fp8";
    case DType::i8: return "i8";
    case DType::u8: return "u8";
  }
  unreachable("DType");
}

}  // namespace slip
