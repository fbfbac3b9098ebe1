// The loops of int4_descent.cc and of the inner products it needs, compiled once per instruction
// set.
#pragma once

#include <cstddef>

#include "quant/lane_sum.h"

namespace slip {

// Some rows of a matrix of inner products over `rows` rows of x.
struct GramPart {
  size_t rows = 0;
  size_t inputs = 0;
  size_t begin = 0, end = 0;
};

// Lengths are multiples of 32.
struct DescentLoops {
  // y += a x
  void (*axpy)(float* y, float a, const float* x, size_t count);
  float (*dot)(const float* x, const float* y, size_t count);
  // products[i, j] += sum over rows of x[row, i] x[row, j], for i in [begin, end) and j from the
  // multiple of 32 at or below i on. Rows come in eights.
  void (*gram)(float* products, const float* x, const GramPart& part);
};

// The best of this machine.
const DescentLoops& descent_loops();

extern const DescentLoops kPortableDescentLoops, kAvx2DescentLoops, kAvx512DescentLoops;

// Everything below has internal linkage: a copy that the linker shared among files could be one
// with instructions that this machine lacks.

static inline void axpy(float* y, float a, const float* x, size_t count) {
  for (size_t i = 0; i < count; ++i) y[i] += a * x[i];
}

template <size_t kLanes>
static inline float dot(const float* x, const float* y, size_t count) {
  float sums[kLanes] = {};
  for (size_t begin = 0; begin < count; begin += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[begin + lane] * y[begin + lane];
  return sum_of(sums);
}

static inline void gram(float* products, const float* x, const GramPart& part) {
  constexpr size_t kRows = 8;  // whose products are added to a sum while it is in a register
  for (size_t first = 0; first < part.rows; first += kRows) {
    const float* rows[kRows];
    for (size_t r = 0; r < kRows; ++r) rows[r] = x + (first + r) * part.inputs;
    for (size_t i = part.begin; i < part.end; ++i) {
      float* into = products + i * part.inputs;
      for (size_t j = i / 32 * 32; j < part.inputs; ++j)
        into[j] += ((rows[0][i] * rows[0][j] + rows[1][i] * rows[1][j]) +
                    (rows[2][i] * rows[2][j] + rows[3][i] * rows[3][j])) +
                   ((rows[4][i] * rows[4][j] + rows[5][i] * rows[5][j]) +
                    (rows[6][i] * rows[6][j] + rows[7][i] * rows[7][j]));
    }
  }
}

}  // namespace slip
