#include "convert/gguf_rows.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "quant/number_formats.h"
#include "quant/widen_row.h"

namespace slip {
namespace {

void put(const void* bytes, size_t size, std::vector<std::byte>& out) {
  const auto* from = static_cast<const std::byte*>(bytes);
  out.insert(out.end(), from, from + size);
}

uint8_t code_at(const uint8_t* codes, int64_t column) {
  const uint8_t byte = codes[column / 2];
  return column % 2 ? byte >> 4 : byte & 15;
}

// The same codes and scales: a group of 64 or 128 becomes blocks that repeat its scale.
void append_q4_0(const Weight& weight, int64_t row, int64_t first, int64_t count,
                 std::vector<std::byte>& out) {
  const int64_t groups = weight.info.in / weight.info.group;
  const auto* codes =
      reinterpret_cast<const uint8_t*>(weight.values.data) + row * weight.info.in / 2;
  const auto* scales = reinterpret_cast<const uint16_t*>(weight.scales.data) + row * groups;
  for (int64_t begin = first; begin < first + count; begin += kGgufBlock) {
    uint8_t block[kGgufBlockBytes];
    std::memcpy(block, &scales[begin / weight.info.group], 2);
    for (int64_t j = 0; j < kGgufBlock / 2; ++j)
      block[2 + j] =
          uint8_t(code_at(codes, begin + j) | code_at(codes, begin + kGgufBlock / 2 + j) << 4);
    put(block, sizeof(block), out);
  }
}

void append_floats(const Weight& weight, int64_t row, GgufType type, int64_t first, int64_t count,
                   std::vector<std::byte>& out) {
  for (int64_t column = first; column < first + count; ++column) {
    const float value = weight_at(weight, row, column);
    if (type == GgufType::f32) {
      put(&value, 4, out);
    } else {
      check(type == GgufType::bf16, "floats as ", name_of(type));
      const uint16_t bits = float_to_bf16(value);
      put(&bits, 2, out);
    }
  }
}

}  // namespace

GgufType gguf_type_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32: return GgufType::f32;
    case WeightFormat::f16: return GgufType::f16;
    case WeightFormat::int4_group: return GgufType::q4_0;
    case WeightFormat::bf16:
    case WeightFormat::fp8_block:
    case WeightFormat::int8_row: return GgufType::bf16;
  }
  unreachable("WeightFormat");
}

void append_gguf_row(const Weight& weight, int64_t row, GgufType type, const ColumnOrder& order,
                     std::vector<std::byte>& out) {
  const auto append = [&](int64_t first, int64_t count) {
    const bool as_stored =
        is_plain_float(weight.info.format) && type == gguf_type_of(weight.info.format);
    if (type == GgufType::q4_0) {
      append_q4_0(weight, row, first, count, out);
    } else if (as_stored) {
      const size_t size = size_t(gguf_bytes(type, 1));
      put(reinterpret_cast<const std::byte*>(weight.values.data) +
              size_t(row * weight.info.in + first) * size,
          size_t(count) * size, out);
    } else {
      append_floats(weight, row, type, first, count, out);
    }
  };
  if (order.heads.empty()) append(0, weight.info.in);
  for (const int64_t head : order.heads) append(head * order.width, order.width);
}

}  // namespace slip
