#include "quant/turboquant.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/split_mix.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

// Shorter vectors are zero: their scale would not survive the division.
constexpr double kShortest = 1e-20;

// A sign must be the same on every machine, for as long as caches are kept.
constexpr auto make_signs(uint64_t seed) {
  std::array<float, size_t(kMaxTurboDim)> signs{};
  for (float& sign : signs) {
    seed += kSplitMixStep;
    sign = split_mix(seed) >> 63 ? -1.0f : 1.0f;
  }
  return signs;
}

constexpr auto kKeySigns = make_signs(0x54514B01);
constexpr auto kValueSigns = make_signs(0x54515601);

// x <- H x / sqrt(x.size()), natural (Sylvester) order, short strides first: every value of every
// stage is one addition, so that a vectorised version has the same bits.
template <class Real>
void hadamard(std::span<Real> x) {
  check(turbo_dim_ok(int64_t(x.size())), "no Hadamard rotation of ", x.size(), " values");
  for (size_t stride = 1; stride < x.size(); stride *= 2) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (i & stride) continue;
      const Real a = x[i], b = x[i + stride];
      x[i] = a + b;
      x[i + stride] = a - b;
    }
  }
  const Real norm = 1 / std::sqrt(Real(x.size()));
  for (Real& value : x) value *= norm;
}

template <class Real>
void apply_signs(std::span<Real> x, KvSide side) {
  const std::span<const float> signs = turbo_signs(side);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= Real(signs[i]);
}

// The signs must come before H: after it they would change nothing, since books are symmetric.
template <class Real>
void rotate(std::span<Real> x, KvSide side) {
  apply_signs(x, side);
  hadamard(x);
}

template <class Real>
void unrotate(std::span<Real> x, KvSide side) {
  hadamard(x);
  apply_signs(x, side);
}

// Levels have at most four significant bits: exact in int8, fp8, f16 and bf16.
constexpr std::array<int8_t, 4> kLevels2 = {-72, -22, 22, 72};
constexpr std::array<int8_t, 8> kLevels3 = {-88, -56, -32, -10, 10, 32, 56, 88};
constexpr std::array<int8_t, 16> kLevels4 = {-96, -72, -56, -44, -32, -22, -14, -5,
                                             5,   14,  22,  32,  44,  56,  72,  96};

template <size_t kCount>
constexpr auto midpoints(const std::array<int8_t, kCount>& levels) {
  std::array<float, kCount - 1> between{};
  for (size_t i = 0; i + 1 < kCount; ++i) between[i] = float(levels[i] + levels[i + 1]) / 2;
  return between;
}

constexpr auto kThresholds2 = midpoints(kLevels2);
constexpr auto kThresholds3 = midpoints(kLevels3);
constexpr auto kThresholds4 = midpoints(kLevels4);

// kappa: where the error of a Gaussian is smallest.
constexpr TurboBook kBook2{kLevels2, kThresholds2, 47.7404f};
constexpr TurboBook kBook3{kLevels3, kThresholds3, 41.1590f};
constexpr TurboBook kBook4{kLevels4, kThresholds4, 35.0261f};

// Squares of floats are exact in double and cannot overflow there, so this is finite exactly when
// all values are.
double squared_length(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += double(value) * double(value);
  return sum;
}

bool is_codable(double squared) {
  return std::isfinite(squared) && squared >= kShortest * kShortest;
}

float round_to_bf16(float value) { return bf16_to_float(float_to_bf16(value)); }

}  // namespace

std::span<const float> turbo_signs(KvSide side) {
  return side == KvSide::keys ? kKeySigns : kValueSigns;
}

void turbo_rotate(std::span<float> x, KvSide side) { rotate(x, side); }
void turbo_unrotate(std::span<float> x, KvSide side) { unrotate(x, side); }
void turbo_rotate(std::span<double> x, KvSide side) { rotate(x, side); }
void turbo_unrotate(std::span<double> x, KvSide side) { unrotate(x, side); }

const TurboBook& turbo_book(int bits) {
  switch (bits) {
    case 2: return kBook2;
    case 3: return kBook3;
    case 4: return kBook4;
    default: fail_check(cat("no code book of ", bits, " bits"), SourceLocation::current());
  }
}

float turbo_encode(std::span<const float> rotated, int bits, std::span<uint8_t> indices) {
  const TurboBook& book = turbo_book(bits);
  const double squared = squared_length(rotated);
  if (!is_codable(squared)) {
    std::ranges::fill(indices, uint8_t(1 << (bits - 1)));
    return 0;
  }
  const double unit = double(book.kappa) * std::sqrt(double(rotated.size()) / squared);
  double overlap = 0;  // with the levels
  for (size_t i = 0; i < rotated.size(); ++i) {
    const double value = double(rotated[i]);
    const auto index = std::ranges::count_if(
        book.thresholds, [&](float threshold) { return double(threshold) <= value * unit; });
    indices[i] = uint8_t(index);
    overlap += value * double(book.levels[size_t(index)]);
  }
  return round_to_bf16(float(squared / overlap));
}

float turbo_encode_int8(std::span<const float> rotated, std::span<int8_t> codes) {
  if (!is_codable(squared_length(rotated))) {
    std::ranges::fill(codes, int8_t{0});
    return 0;
  }
  float largest = 0;
  for (const float value : rotated) largest = std::max(largest, std::fabs(value));
  // At most 1/256 too small in bf16, so that the largest quotient stays below 127.5.
  const float scale = round_to_bf16(largest / 127.0f);
  for (size_t i = 0; i < rotated.size(); ++i) codes[i] = int8_t(std::nearbyint(rotated[i] / scale));
  return scale;
}

}  // namespace slip
