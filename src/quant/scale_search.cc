#include "quant/scale_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "quant/int4_loops.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

// 1 / d of the candidates.
constexpr std::array<double, kScaleSteps> make_shares() {
  std::array<double, kScaleSteps> shares{};
  for (size_t i = 0; i < shares.size(); ++i) shares[i] = 1 / (5.5 + 0.08 * double(i));
  return shares;
}
constexpr std::array<double, kScaleSteps> kShares = make_shares();
constexpr double kLeastScale = 1e-5;  // |scale| of groups of (almost) nothing
constexpr double kLeastPeak = 8e-5;
constexpr float kCloseEnough = 1 + 1e-4f;  // what the float sums may be off, and far more
constexpr int kImprovements = 3;
constexpr double kUncut = 7.49;  // in scales: rounds to 7, also where float is off a little

// Rounded once; by way of float it would be twice. The value is positive.
double round_to_f16(double value) {
  if (value < 0x1p-14) return std::nearbyint(value * 0x1p24) * 0x1p-24;  // subnormal
  constexpr int kDropped = 52 - 10;                                      // bits of the mantissa
  constexpr uint64_t kHalf = (uint64_t{1} << (kDropped - 1)) - 1;
  uint64_t bits = std::bit_cast<uint64_t>(value);
  bits = (bits + kHalf + ((bits >> kDropped) & 1)) >> kDropped << kDropped;
  const double rounded = std::bit_cast<double>(bits);
  return rounded > 65504.0 ? INFINITY : rounded;
}

}  // namespace

double int4_scale_as_stored(double scale) {
  return std::copysign(round_to_f16(std::max(std::fabs(scale), kLeastScale)), scale);
}

namespace {

// The largest magnitude. In chains: a single one would wait for each comparison.
float largest(std::span<const float> group) {
  constexpr size_t kChains = 16;
  float peaks[kChains] = {};
  for (size_t begin = 0; begin < group.size(); begin += kChains) {
    for (size_t lane = 0; lane < kChains; ++lane) {
      const float magnitude = std::fabs(group[begin + lane]);
      peaks[lane] = magnitude > peaks[lane] ? magnitude : peaks[lane];
    }
  }
  return *std::max_element(peaks, peaks + kChains);
}

// The best so far; another one must be strictly better.
struct Best {
  const Int4Loops& loops;
  std::span<const float> group;
  double scale = INFINITY;
  ScaleSums sums{.error = INFINITY};

  bool attempt(double stored) {
    if (std::isinf(stored) || stored == scale) return false;
    const ScaleSums found = loops.sums(group.data(), group.size(), stored);
    if (!(found.error < sums.error)) return false;
    scale = stored;
    sums = found;
    return true;
  }
  double least_squares_scale() const { return sums.products / std::max(sums.squares, 1e-30); }
};

}  // namespace

uint16_t best_int4_scale(std::span<const float> group) {
  static const Int4Loops& loops = int4_loops();
  check(!group.empty() && group.size() % 32 == 0, "best_int4_scale: groups of ", group.size());
  const double peak = std::max(double(largest(group)), kLeastPeak);
  std::array<double, kScaleSteps> scales;
  std::array<float, kScaleSteps> inverses;
  std::array<float, 2 * size_t(kScaleSteps)> errors;
  int uncut = 0;
  for (size_t step = 0; step < kScaleSteps; ++step) {
    scales[step] = int4_scale_as_stored(peak * kShares[step]);
    inverses[step] = 1.0f / float(scales[step]);
    if (peak < kUncut * scales[step]) uncut = int(step) + 1;
  }
  loops.candidate_errors(group.data(), group.size(), {inverses.data(), errors.data(), uncut});
  float least = INFINITY;
  for (size_t step = 0; step < kScaleSteps; ++step) {
    const auto square = float(scales[step] * scales[step]);
    for (const size_t i : {2 * step, 2 * step + 1}) least = std::min(least, errors[i] *= square);
  }
  Best best{loops, group};
  for (size_t step = 0; step < kScaleSteps; ++step) {
    if (errors[2 * step] <= least * kCloseEnough) best.attempt(scales[step]);
    if (int(step) >= uncut && errors[2 * step + 1] <= least * kCloseEnough)
      best.attempt(-scales[step]);
  }
  for (int i = 0; i < kImprovements && !std::isinf(best.scale); ++i)
    if (!best.attempt(int4_scale_as_stored(best.least_squares_scale()))) break;
  return float_to_f16(float(best.scale));
}

}  // namespace slip
