#include "convert/fp8_twin.h"

#include <array>
#include <cmath>

#include "convert/plain_matrix.h"
#include "quant/fp8_block.h"
#include "quant/number_formats.h"
#include "quant/widen_row.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

// Rounding to FP8 moves a matrix by 2.6 %; another fine-tune moves it further than rounding can.
constexpr double kMostDifference = 0.1;

std::array<float, 256> fp8_values() {
  std::array<float, 256> values;
  for (int code = 0; code < 256; ++code) values[size_t(code)] = fp8_to_float(uint8_t(code));
  return values;
}

double relative_difference(const Weight& original, const Weight& scaled,
                           std::span<const std::byte> codes) {
  static const std::array<float, 256> values = fp8_values();
  const int64_t rows = original.info.out, columns = original.info.in;
  const int64_t blocks = scaled.scales.shape[1];
  std::vector<float> row(static_cast<size_t>(columns));
  double difference = 0, size = 0;
  for (int64_t r = 0; r < rows; ++r) {
    widen_row(original, r, row);
    const float* scales = scaled.scales.f32() + r / kFp8Block * blocks;
    const auto* code = reinterpret_cast<const uint8_t*>(codes.data()) + r * columns;
    for (int64_t c = 0; c < columns; ++c) {
      const float is = row[size_t(c)], becomes = values[code[c]] * scales[c / kFp8Block];
      difference += double(is - becomes) * double(is - becomes);
      size += double(is) * double(is);
    }
  }
  return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

}  // namespace

Status check_fp8_twin(const StoredTensor& original, const Fp8Bytes& fp8) {
  const int64_t rows = original.shape[0], columns = original.shape[1];
  SLIP_TRY_STATUS(check_fp8_codes(fp8.weight, columns));
  const WeightInfo info{WeightFormat::fp8_block, rows, columns, kFp8Block};
  Buffer storage(host_memory(), plain_bytes(info));
  const Weight scaled = plain_weight(info, storage.data());
  SLIP_TRY_STATUS(
      read_fp8_scales(fp8.scales, plain_dtype(fp8.described.scales.type).value(), scaled));
  SLIP_TRY(const PlainMatrix plain, PlainMatrix::of(original));
  const double difference = relative_difference(plain.weight(), scaled, fp8.weight);
  if (difference <= kMostDifference) return {};
  return error("differs by ", std::round(1000 * difference) / 10, " % from the 16-bit ",
               original.name, " of the INT4 checkpoint, expected below ", 100 * kMostDifference,
               " %; the two checkpoints are not of the same model");
}

}  // namespace slip
