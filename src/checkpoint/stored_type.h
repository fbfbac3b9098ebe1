// The number types that a safetensors file can hold. What they mean is the business of quant/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace slip {

enum class StoredType {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean
};

// As safetensors spells it: "F32", "BF16", "F8_E4M3", ...
std::string_view stored_type_name(StoredType type);

int64_t bytes_per_value(StoredType type);

// Nothing for a name that is not in the list above.
std::optional<StoredType> parse_stored_type(std::string_view name);

// All names, "F64, F32, ...", for messages that say what was expected.
std::string stored_type_names();

// "[2, 3]", for messages.
std::string describe_shape(std::span<const int64_t> shape);

}  // namespace slip
