// The loops of scale_search.cc and int4_group.cc, compiled once per instruction set: errors of all
// candidates in float, which tell the ones worth a closer look, that closer look in double, and the
// codes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/lane_sum.h"

namespace slip {

inline constexpr int kScaleSteps = 63;  // values of d

// errors[2 i] and errors[2 i + 1] belong to +peak / d_i and -peak / d_i, in units of scale^2.
struct ScaleCandidates {
  const float* inverses;  // [kScaleSteps] d_i / peak
  float* errors;          // [2 * kScaleSteps]
  int uncut;              // of the first so many steps, no code lies outside -7 .. 7
};

// Of one scale and the codes that it gives.
struct ScaleSums {
  double error = 0;     // (code * scale - value)^2
  double products = 0;  // value * code
  double squares = 0;   // code^2
};

// Lengths are multiples of 32.
struct Int4Loops {
  void (*candidate_errors)(const float* group, size_t count, const ScaleCandidates& candidates);
  ScaleSums (*sums)(const float* group, size_t count, double scale);
  // Codes plus eight, two to a byte, the first in the low half.
  void (*codes)(const float* group, size_t count, double scale, uint8_t* packed);
};

// The best of this machine.
const Int4Loops& int4_loops();

extern const Int4Loops kPortableInt4Loops, kAvx2Int4Loops, kAvx512Int4Loops;

// Everything below has internal linkage: a copy that the linker shared among files could be one
// with instructions that this machine lacks.

// Added and subtracted, it leaves the nearest integer, ties to even.
constexpr float kFloatRounder = 12582912.0f;  // 1.5 * 2^23

// Steps so large that no code reaches 8: nothing is cut, and both signs have the same error.
template <size_t kLanes>
static inline float uncut_error(const float* group, size_t count, float inverse) {
  float sums[kLanes] = {};
  for (size_t begin = 0; begin < count; begin += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float scaled = group[begin + lane] * inverse;
      const float off = scaled - ((scaled + kFloatRounder) - kFloatRounder);
      sums[lane] += off * off;
    }
  }
  return sum_of(sums);
}

template <size_t kLanes>
static inline void cut_errors(const float* group, size_t count, float inverse, float* errors) {
  float plus[kLanes] = {}, minus[kLanes] = {};
  for (size_t begin = 0; begin < count; begin += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float scaled = group[begin + lane] * inverse;
      const float rounded = (scaled + kFloatRounder) - kFloatRounder;
      const float above = rounded < -8.0f ? -8.0f : rounded;
      const float code = above > 7.0f ? 7.0f : above;
      const float off = scaled - code;
      plus[lane] += off * off;
      // The other sign has the same integers, cut at 8 above and -7 below.
      const float other_above = rounded < -7.0f ? -7.0f : rounded;
      const float other_code = other_above > 8.0f ? 8.0f : other_above;
      const float other_off = scaled - other_code;
      minus[lane] += other_off * other_off;
    }
  }
  errors[0] = sum_of(plus);
  errors[1] = sum_of(minus);
}

template <size_t kLanes>
static inline void candidate_errors(const float* group, size_t count,
                                    const ScaleCandidates& candidates) {
  for (int step = 0; step < kScaleSteps; ++step) {
    float* errors = candidates.errors + 2 * size_t(step);
    if (step < candidates.uncut) {
      errors[0] = errors[1] = uncut_error<kLanes>(group, count, candidates.inverses[step]);
    } else {
      cut_errors<kLanes>(group, count, candidates.inverses[step], errors);
    }
  }
}

static inline double int4_code_of(double value, double scale) {
  constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52
  const double rounded = (value / scale + kRounder) - kRounder;
  const double above = rounded < -8.0 ? -8.0 : rounded;
  return above > 7.0 ? 7.0 : above;
}

// Always eight sums, so that every instruction set adds in the same order.
static inline ScaleSums scale_sums(const float* group, size_t count, double scale) {
  constexpr size_t kLanes = 8;
  double error[kLanes] = {}, products[kLanes] = {}, squares[kLanes] = {};
  for (size_t begin = 0; begin < count; begin += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = group[begin + lane];
      const double code = int4_code_of(value, scale);
      const double off = code * scale - value;
      error[lane] += off * off;
      products[lane] += value * code;
      squares[lane] += code * code;
    }
  }
  ScaleSums all;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    all.error += error[lane];
    all.products += products[lane];
    all.squares += squares[lane];
  }
  return all;
}

static inline void int4_codes(const float* group, size_t count, double scale, uint8_t* packed) {
  constexpr size_t kLanes = 32;
  for (size_t begin = 0; begin < count; begin += kLanes) {
    uint8_t codes[kLanes];
    for (size_t lane = 0; lane < kLanes; ++lane)
      codes[lane] = uint8_t(int(int4_code_of(group[begin + lane], scale)) + 8);
    for (size_t pair = 0; pair < kLanes / 2; ++pair)
      packed[begin / 2 + pair] = uint8_t(codes[2 * pair] | codes[2 * pair + 1] << 4);
  }
}

}  // namespace slip
