#include "quant/fp8_block.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "quant/number_formats.h"
#include "quant/stored_values.h"
#include "quant/widen_row.h"

namespace slip {
namespace {

bool is_nan_code(std::byte code) { return fp8_is_nan(uint8_t(code)); }

// Of a fixed length and without an early exit, so that the compiler makes it vector code.
constexpr size_t kRun = 256;

bool any_nan(const std::byte* codes) {
  uint8_t found = 0;
  for (size_t i = 0; i < kRun; ++i) found |= uint8_t(is_nan_code(codes[i]));
  return found != 0;
}

float block_scale(float largest) {
  const float scale = bf16_to_float(float_to_bf16(largest / kFp8Max));
  return scale > 0 ? scale : 1.0f;  // zeros, or so small that the scale underflows
}

}  // namespace

Status read_fp8_scales(std::span<const std::byte> stored, DType stored_type, const Weight& into) {
  check(into.info.format == WeightFormat::fp8_block && !into.packed && !into.empty(),
        "read_fp8_scales fills a plain fp8 weight");
  if (stored_type != DType::bf16 && stored_type != DType::f16 && stored_type != DType::f32)
    return error("fp8 scales are stored as ", name_of(stored_type),
                 "; bf16, f16 and f32 are supported");
  const Shape& shape = into.scales.shape;
  const size_t expected = size_t(shape.count()) * bytes_per_value(stored_type);
  if (stored.size() != expected)
    return error("fp8 scales have ", stored.size(), " bytes, expected ", expected, " for ", shape,
                 " in ", name_of(stored_type));
  float* scales = into.scales.f32();
  for (int64_t i = 0; i < shape.count(); ++i) {
    scales[i] = stored_type == DType::f32    ? load<float>(stored.data(), i)
                : stored_type == DType::bf16 ? bf16_to_float(load<uint16_t>(stored.data(), i))
                                             : f16_to_float(load<uint16_t>(stored.data(), i));
    if (!std::isfinite(scales[i]))
      return error("fp8 scale of block row ", i / shape[1], ", block column ", i % shape[1], " is ",
                   scales[i], ", expected a finite number");
  }
  return {};
}

Status check_fp8_codes(std::span<const std::byte> codes, int64_t in) {
  check(in > 0 && int64_t(codes.size()) % in == 0, "check_fp8_codes: ", codes.size(),
        " codes in rows of ", in);
  for (size_t begin = 0; begin < codes.size(); begin += kRun) {
    const auto run = codes.subspan(begin, std::min(kRun, codes.size() - begin));
    if (run.size() == kRun && !any_nan(run.data())) continue;
    const auto bad = std::find_if(run.begin(), run.end(), is_nan_code);
    if (bad == run.end()) continue;
    const int64_t index = int64_t(begin) + (bad - run.begin());
    return error("fp8 weight is NaN at output row ", index / in, ", input ", index % in,
                 "; the file is damaged or its quantization overflowed");
  }
  return {};
}

Status quantize_fp8_blocks(const Weight& from, const Weight& into, int64_t first_row) {
  check(!from.packed && !into.packed && into.info.format == WeightFormat::fp8_block,
        "quantize_fp8_blocks reads and writes plain weights");
  const int64_t rows = from.info.out, in = from.info.in, end = first_row + rows;
  check(in == into.info.in && first_row % kFp8Block == 0 &&
            (end == into.info.out || (end < into.info.out && rows % kFp8Block == 0)),
        "quantize_fp8_blocks: ", rows, " x ", in, " at row ", first_row, " of ", into.info.out,
        " x ", into.info.in);
  auto* codes = into.values.as<uint8_t>(DType::fp8_e4m3) + first_row * in;
  std::vector<float> values(size_t(std::min<int64_t>(rows, kFp8Block) * in));
  for (int64_t top = 0; top < rows; top += kFp8Block) {
    const int64_t height = std::min<int64_t>(kFp8Block, rows - top);
    for (int64_t row = 0; row < height; ++row)
      widen_row(from, top + row, std::span(values).subspan(size_t(row * in), size_t(in)));
    float* scales = into.scales.slice((first_row + top) / kFp8Block, 1).f32();
    for (int64_t left = 0; left < in; left += kFp8Block) {
      const int64_t width = std::min<int64_t>(kFp8Block, in - left);
      float largest = 0;
      for (int64_t row = 0; row < height; ++row) {
        const float found =
            largest_magnitude(std::span(values).subspan(size_t(row * in + left), size_t(width)));
        if (!std::isfinite(found))
          return error("row ", first_row + top + row, ": weight holds ", found);
        largest = std::max(largest, found);
      }
      const float scale = block_scale(largest);
      scales[left / kFp8Block] = scale;
      for (int64_t row = 0; row < height; ++row)
        for (int64_t i = row * in + left; i < row * in + left + width; ++i)
          codes[top * in + i] = float_to_fp8(values[size_t(i)] / scale);
    }
  }
  return {};
}

}  // namespace slip
