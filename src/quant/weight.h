// Weight: a matrix y = W x in one of the number formats a linear layer may have at run time. The
// format is a property of the tensor found in the file, never of the model.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace slip {

enum class WeightFormat : uint8_t { f32, bf16, f16, fp8_block, int8_row, int4_group };

const char* name_of(WeightFormat format);

// Everything about a weight but its bytes.
struct WeightInfo {
  WeightFormat format = WeightFormat::f32;
  int64_t out = 0;  // rows of W
  int64_t in = 0;   // columns of W
  int group = 0;    // int4_group: inputs per scale (32, 64 or 128); fp8_block: 128
};

// Plain layout, the one defined here:
//   f32, bf16, f16   values [out, in]
//   fp8_block        values fp8 [out, in];         scales f32 [ceil(out/128), ceil(in/128)]
//   int8_row         values i8 [out, in];          scales f32 [out]
//   int4_group       values u8 [out, in/2], input 2j in the low nibble of byte j;
//                    scales f16 [out, in/group];   w = (code - 8) * scale, scales may be negative
// A backend may keep a weight in a layout of its own (Ops::pack); then `packed` is set, `values`
// covers all bytes and only that backend understands them.
struct Weight {
  WeightInfo info;
  View values;
  View scales;
  bool packed = false;

  bool empty() const { return values.empty(); }
};

inline constexpr int kFp8Block = 128;

// Bytes of values and scales in the plain layout.
size_t plain_value_bytes(const WeightInfo& info);
size_t plain_scale_bytes(const WeightInfo& info);
inline size_t plain_bytes(const WeightInfo& info) {
  return plain_value_bytes(info) + plain_scale_bytes(info);
}

// Views over storage of at least plain_bytes(info): values first, then scales.
Weight plain_weight(const WeightInfo& info, std::byte* storage);

// One element of a plain weight, exactly as the format defines it. Slow; the specification.
float weight_at(const Weight& weight, int64_t row, int64_t column);

}  // namespace slip
