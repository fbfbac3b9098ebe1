#include "convert/plain_matrix.h"

#include <cstring>

namespace slip {
namespace {

WeightFormat format_of(DType type) {
  if (type == DType::bf16) return WeightFormat::bf16;
  return type == DType::f16 ? WeightFormat::f16 : WeightFormat::f32;
}

}  // namespace

std::optional<DType> plain_dtype(StoredType type) {
  switch (type) {
    case StoredType::f32: return DType::f32;
    case StoredType::bf16: return DType::bf16;
    case StoredType::f16: return DType::f16;
    case StoredType::f64:
    case StoredType::f8_e4m3:
    case StoredType::f8_e5m2:
    case StoredType::f8_e8m0:
    case StoredType::i64:
    case StoredType::i32:
    case StoredType::i16:
    case StoredType::i8:
    case StoredType::u64:
    case StoredType::u32:
    case StoredType::u16:
    case StoredType::u8:
    case StoredType::boolean: return std::nullopt;
  }
  unreachable("StoredType");
}

Result<PlainMatrix> PlainMatrix::of(const StoredTensor& tensor, int64_t first, int64_t rows) {
  const std::optional<DType> type = plain_dtype(tensor.type);
  if (!type)
    return error(tensor.path().string(), ": tensor ", tensor.name,
                 ": expected BF16, F16 or F32, found ", stored_type_name(tensor.type));
  const int64_t columns = tensor.shape.back();
  PlainMatrix matrix;
  const size_t row_bytes = size_t(columns) * slip::bytes_per_value(*type);
  matrix.bytes_ = tensor.data.subspan(size_t(first) * row_bytes, size_t(rows) * row_bytes);
  // Weights are read only, but a view has no way to say so.
  auto* data = const_cast<std::byte*>(matrix.bytes_.data());
  if (reinterpret_cast<uintptr_t>(data) % slip::bytes_per_value(*type) != 0) {
    matrix.aligned_.resize((matrix.bytes_.size() + sizeof(float) - 1) / sizeof(float));
    data = reinterpret_cast<std::byte*>(matrix.aligned_.data());
    std::memcpy(data, matrix.bytes_.data(), matrix.bytes_.size());
  }
  matrix.weight_.info = {format_of(*type), rows, columns, 0};
  matrix.weight_.values = View{data, *type, {rows, columns}};
  return matrix;
}

}  // namespace slip
