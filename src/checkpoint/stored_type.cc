#include "checkpoint/stored_type.h"

#include <array>

#include "base/check.h"
#include "base/text.h"

namespace slip {
namespace {

constexpr std::array kTypes = {
    StoredType::f64,     StoredType::f32,     StoredType::f16,     StoredType::bf16,
    StoredType::f8_e4m3, StoredType::f8_e5m2, StoredType::f8_e8m0, StoredType::i64,
    StoredType::i32,     StoredType::i16,     StoredType::i8,      StoredType::u64,
    StoredType::u32,     StoredType::u16,     StoredType::u8,      StoredType::boolean,
};

}  // namespace

std::string_view stored_type_name(StoredType type) {
  switch (type) {
    case StoredType::f64: return "F64";
    case StoredType::f32: return "F32";
    case StoredType::f16: return "F16";
    case StoredType::bf16: return "BF16";
    case StoredType::f8_e4m3: return "F8_E4M3";
    case StoredType::f8_e5m2: return "F8_E5M2";
    case StoredType::f8_e8m0: return "F8_E8M0";
    case StoredType::i64: return "I64";
    case StoredType::i32: return "I32";
    case StoredType::i16: return "I16";
    case StoredType::i8: return "I8";
    case StoredType::u64: return "U64";
    case StoredType::u32: return "U32";
    case StoredType::u16: return "U16";
    case StoredType::u8: return "U8";
    case StoredType::boolean: return "BOOL";
  }
  unreachable("StoredType");
}

int64_t bytes_per_value(StoredType type) {
  switch (type) {
    case StoredType::f64:
    case StoredType::i64:
    case StoredType::u64: return 8;
    case StoredType::f32:
    case StoredType::i32:
    case StoredType::u32: return 4;
    case StoredType::f16:
    case StoredType::bf16:
    case StoredType::i16:
    case StoredType::u16: return 2;
    case StoredType::f8_e4m3:
    case StoredType::f8_e5m2:
    case StoredType::f8_e8m0:
    case StoredType::i8:
    case StoredType::u8:
    case StoredType::boolean: return 1;
  }
  unreachable("StoredType");
}

std::optional<StoredType> parse_stored_type(std::string_view name) {
  for (const StoredType type : kTypes)
    if (stored_type_name(type) == name) return type;
  return std::nullopt;
}

std::string stored_type_names() {
  std::string names;
  for (const StoredType type : kTypes) {
    if (!names.empty()) names += ", ";
    names += stored_type_name(type);
  }
  return names;
}

std::string describe_shape(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += cat(text.size() > 1 ? ", " : "", size);
  return text + "]";
}

}  // namespace slip
