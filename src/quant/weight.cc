#include "quant/weight.h"

#include "quant/number_formats.h"

namespace slip {
namespace {

int64_t blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

Shape value_shape(const WeightInfo& info) {
  if (info.format == WeightFormat::int4_group) return {info.out, info.in / 2};
  return {info.out, info.in};
}

DType value_type(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32: return DType::f32;
    case WeightFormat::bf16: return DType::bf16;
    case WeightFormat::f16: return DType::f16;
    case WeightFormat::fp8_block: return DType::fp8_e4m3;
    case WeightFormat::int8_row: return DType::i8;
    case WeightFormat::int4_group: return DType::u8;
  }
  unreachable("WeightFormat");
}

View scale_view(const WeightInfo& info, std::byte* data) {
  switch (info.format) {
    case WeightFormat::f32:
    case WeightFormat::bf16:
    case WeightFormat::f16: return {};
    case WeightFormat::fp8_block:
      return {data, DType::f32, {blocks(info.out, kFp8Block), blocks(info.in, kFp8Block)}};
    case WeightFormat::int8_row: return {data, DType::f32, {info.out}};
    case WeightFormat::int4_group: return {data, DType::f16, {info.out, info.in / info.group}};
  }
  unreachable("WeightFormat");
}

}  // namespace

const char* name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32: return "f32";
    case WeightFormat::bf16: return "bf16";
    case WeightFormat::f16: return "f16";
    case WeightFormat::fp8_block: return "fp8";
    case WeightFormat::int8_row: return "int8";
    case WeightFormat::int4_group: return "int4";
  }
  unreachable("WeightFormat");
}

size_t plain_value_bytes(const WeightInfo& info) {
  // Rounded up, so that the scales behind the values are aligned.
  constexpr size_t kAlignment = 64;
  const size_t bytes = size_t(value_shape(info).count()) * bytes_per_value(value_type(info.format));
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

size_t plain_scale_bytes(const WeightInfo& info) {
  const View scales = scale_view(info, nullptr);
  return scales.shape.rank() == 0 ? 0 : scales.bytes();
}

Weight plain_weight(const WeightInfo& info, std::byte* storage) {
  if (info.format == WeightFormat::int4_group)
    check(info.group > 0 && info.in % info.group == 0 && info.in % 2 == 0, "int4 weight with ",
          info.in, " inputs in groups of ", info.group);
  Weight weight;
  weight.info = info;
  weight.values = {storage, value_type(info.format), value_shape(info)};
  weight.scales = scale_view(info, storage + plain_value_bytes(info));
  return weight;
}

float weight_at(const Weight& weight, int64_t row, int64_t column) {
  check(!weight.packed, "weight_at needs the plain layout");
  const WeightInfo& info = weight.info;
  const int64_t index = row * info.in + column;
  const std::byte* values = weight.values.data;
  const auto* as_u16 = reinterpret_cast<const uint16_t*>(values);
  const auto* as_u8 = reinterpret_cast<const uint8_t*>(values);
  switch (info.format) {
    case WeightFormat::f32: return reinterpret_cast<const float*>(values)[index];
    case WeightFormat::bf16: return bf16_to_float(as_u16[index]);
    case WeightFormat::f16: return f16_to_float(as_u16[index]);
    case WeightFormat::fp8_block: {
      const int64_t scale = row / kFp8Block * blocks(info.in, kFp8Block) + column / kFp8Block;
      return fp8_to_float(as_u8[index]) * weight.scales.f32()[scale];
    }
    case WeightFormat::int8_row:
      return float(reinterpret_cast<const int8_t*>(values)[index]) * weight.scales.f32()[row];
    case WeightFormat::int4_group: {
      const int code = (as_u8[index / 2] >> (index % 2 * 4)) & 15;
      const auto* scales = weight.scales.as<uint16_t>(DType::f16);
      const int64_t groups = info.in / info.group;
      return float(code - 8) * f16_to_float(scales[row * groups + column / info.group]);
    }
  }
  unreachable("WeightFormat");
}

}  // namespace slip
