// Rows of activations as linear kernels want them: f32, and rounded to integers of
// one or two bytes, once per group size.
#pragma once

#include <vector>

#include "base/threads.h"
#include "kernels/cpu/simd/loops.h"
#include "quant/weight.h"
#include "tensor/buffer.h"

namespace slip {

class RowInputs {
 public:
  // The most values (rows * width) and rows that will be prepared at once.
  void reserve(int64_t rows, int64_t values);
  static size_t reserved_bytes(int64_t rows, int64_t values);

  // Starts a new input [rows, width], rows `stride` apart.
  void set(const float* x, int64_t rows, int64_t width, int64_t stride);

  // Makes integer codes if `format` needs them and they are not there yet for this group size.
  void prepare(const WeightInfo& info, const Loops& loops, ThreadPool& pool);

  // The same part by part, by whoever has just made one, on any thread. False: weights of this
  // format need no codes, or parts of so many values are no whole groups.
  bool begin_parts(const WeightInfo& info, int64_t values, const Loops& loops);
  void prepare_part(int64_t row, int64_t first, int64_t values, const Loops& loops);

  // Valid for weights whose info was prepared last.
  const RowInput* rows() const { return rows_.data(); }

 private:
  void place_codes(int64_t group, const Loops& loops);

  int64_t group_ = 0;  // of the codes at hand; 0: none
  int64_t width_ = 0;
  std::vector<RowInput> rows_;
  int64_t row_count_ = 0;
  Buffer codes_, scales_, sums_;
};

// Whether a format multiplies rounded activations, and with how many of them per scale.
bool uses_integer_activations(WeightFormat format);
int64_t activation_group(const WeightInfo& info);

}  // namespace slip
