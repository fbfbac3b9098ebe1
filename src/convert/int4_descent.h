// Calibrated rounding to int4: codes and scales that keep the outputs of a matrix, not its weights.
//
// With the inner products H = sum over a text of x x^T of a matrix's inputs, rounding a row w to
// w' moves its outputs by (w' - w) H (w' - w)^T in squares. AutoRound descends on that by signed
// gradients of rounding offsets and clipping. For one matrix at a time more is known: codes that
// are chosen one after the other, the last input first, can make good what those before them did
// (the nearest plane of the lattice, which is also what GPTQ finds), and then the best step of a
// single code, and of the scale of a group, is known exactly. Each such step lowers the error, and
// a sweep costs what one gradient does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "quant/weight.h"

namespace slip {

// Inner products of the inputs of a matrix.
struct Gram {
  int64_t inputs = 0;
  int64_t rows = 0;             // inputs that were added
  std::vector<float> products;  // [inputs, inputs], symmetric
};

// The same ready for descending.
class DescentGram {
 public:
  // Adds `damping` of the mean square of an input to every input's own, so that nothing is free to
  // change and few rows are not taken for all there is.
  DescentGram(const Gram& gram, double damping);

  int64_t inputs() const { return inputs_; }
  const float* products(int64_t input) const { return products_.data() + input * inputs_; }
  // A row of the lower triangle L with products = L L^T; zeros behind the diagonal.
  const float* factor(int64_t input) const { return factor_.data() + input * inputs_; }

 private:
  int64_t inputs_;
  std::vector<float> products_, factor_;
};

struct DescentOptions {
  int sweeps = 6;  // over all codes of a row, and its scales
};

// Squared output errors of the rows.
struct DescentErrors {
  double before = 0, after = 0;
};

// Rows [first, first + rows) of a plain int4 weight, which hold a first rounding of `from`, a plain
// f32, bf16 or f16 weight of the same shape.
struct DescentRows {
  const Weight& from;
  const Weight& into;
  int64_t first = 0, rows = 0;
};
DescentErrors descend(const DescentRows& rows, const DescentGram& gram,
                      const DescentOptions& options);

}  // namespace slip
