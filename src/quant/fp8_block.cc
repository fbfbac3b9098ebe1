#include "quant/fp8_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/number_formats.h"

namespace slip {
namespace {

template <class T>
T load(const std::byte* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + size_t(index) * sizeof(T), sizeof(T));
  return value;
}

bool is_nan_code(std::byte code) { return fp8_is_nan(uint8_t(code)); }

// Of a fixed length and without an early exit, so that the compiler makes it vector code.
constexpr size_t kRun = 256;

bool any_nan(const std::byte* codes) {
  uint8_t found = 0;
  for (size_t i = 0; i < kRun; ++i) found |= uint8_t(is_nan_code(codes[i]));
  return found != 0;
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

}  // namespace slip
