#include "convert/int4_descent.h"

#include <algorithm>
#include <cmath>

#include "convert/descent_loops.h"
#include "quant/number_formats.h"
#include "quant/scale_search.h"
#include "quant/widen_row.h"

namespace slip {
namespace {

// One row on its way down.
class RowDescent {
 public:
  RowDescent(const DescentGram& gram, int64_t group)
      : gram_(gram),
        loops_(descent_loops()),
        inputs_(size_t(gram.inputs())),
        group_(size_t(group)),
        weights_(inputs_),
        codes_(inputs_),
        slope_(inputs_),
        moved_(inputs_),
        scales_(inputs_ / group_) {}

  std::span<float> weights() { return weights_; }

  void read(const uint8_t* codes, const uint16_t* scales) {
    for (size_t i = 0; i < inputs_; ++i)
      codes_[i] = float(int(codes[i / 2] >> (i % 2 * 4) & 15) - 8);
    for (size_t g = 0; g < scales_.size(); ++g) scales_[g] = f16_to_float(scales[g]);
    find_slope();
  }

  void write(uint8_t* codes, uint16_t* scales) const {
    for (size_t i = 0; i < inputs_; i += 2)
      codes[i / 2] = uint8_t(int(codes_[i]) + 8) | uint8_t((int(codes_[i + 1]) + 8) << 4);
    for (size_t g = 0; g < scales_.size(); ++g) scales[g] = float_to_f16(scales_[g]);
  }

  double error() const {
    double sum = 0;
    for (size_t i = 0; i < inputs_; ++i) sum += double(difference(i)) * double(slope_[i]);
    return sum;
  }

  // Codes from the last input to the first, each the best that it can be after those behind it, as
  // if those before it could still take any value.
  void take_nearest_plane() {
    std::fill(moved_.begin(), moved_.end(), 0.0f);
    for (size_t i = inputs_; i-- > 0;) {
      const float* factor = gram_.factor(int64_t(i));
      const float scale = scales_[i / group_];
      const float wanted = weights_[i] + moved_[i] / factor[i];
      codes_[i] = std::clamp(std::nearbyint(wanted / scale), -8.0f, 7.0f);
      // What is off at i shifts what every input before it should be.
      loops_.axpy(moved_.data(), weights_[i] - codes_[i] * scale, factor, (i + 31) / 32 * 32);
    }
    find_slope();
  }

  // Every code takes the best value that it has while the others stay; whether one changed.
  bool improve_codes() {
    bool changed = false;
    for (size_t i = 0; i < inputs_; ++i) {
      const float own = products(i)[i], scale = scales_[i / group_];
      const float best = codes_[i] - slope_[i] / (own * scale);
      const float code = std::clamp(std::nearbyint(best), -8.0f, 7.0f);
      if (code == codes_[i] || !(own > 0)) continue;
      loops_.axpy(slope_.data(), (code - codes_[i]) * scale, products(i), inputs_);
      codes_[i] = code;
      changed = true;
    }
    return changed;
  }

  // The same for the scale of each group.
  void improve_scales() {
    for (size_t g = 0; g < scales_.size(); ++g) {
      const size_t begin = g * group_;
      // moved = codes of the group H: how the slope changes per unit of scale
      std::fill(moved_.begin(), moved_.end(), 0.0f);
      for (size_t i = begin; i < begin + group_; ++i)
        if (codes_[i] != 0) loops_.axpy(moved_.data(), codes_[i], products(i), inputs_);
      const float slope = loops_.dot(slope_.data() + begin, codes_.data() + begin, group_);
      const float curve = loops_.dot(moved_.data() + begin, codes_.data() + begin, group_);
      if (!(curve > 0)) continue;
      const auto scale = float(int4_scale_as_stored(double(scales_[g]) - double(slope) / curve));
      if (scale == scales_[g] || !std::isfinite(scale)) continue;
      const float step = scale - scales_[g];
      // Rounding to f16 may overshoot: only a step that helps is taken.
      if (double(step) * (2 * double(slope) + double(step) * curve) >= 0) continue;
      loops_.axpy(slope_.data(), step, moved_.data(), inputs_);
      scales_[g] = scale;
    }
  }

 private:
  // slope = (rounded - weights) H
  void find_slope() {
    std::fill(slope_.begin(), slope_.end(), 0.0f);
    for (size_t i = 0; i < inputs_; ++i)
      loops_.axpy(slope_.data(), difference(i), products(i), inputs_);
  }
  const float* products(size_t i) const { return gram_.products(int64_t(i)); }
  float difference(size_t i) const { return codes_[i] * scales_[i / group_] - weights_[i]; }

  const DescentGram& gram_;
  const DescentLoops& loops_;
  size_t inputs_, group_;
  std::vector<float> weights_, codes_, slope_, moved_, scales_;
};

}  // namespace

DescentGram::DescentGram(const Gram& gram, double damping)
    : inputs_(gram.inputs), products_(gram.products), factor_(gram.products.size()) {
  const DescentLoops& loops = descent_loops();
  const auto inputs = size_t(inputs_);
  double sum = 0;
  for (size_t i = 0; i < inputs; ++i) sum += double(products_[i * inputs + i]);
  const auto more = float(damping * sum / double(inputs));
  for (size_t i = 0; i < inputs; ++i) products_[i * inputs + i] += more;
  // Cholesky, row by row. Sums run a little past j: what lies there is still zero.
  for (size_t i = 0; i < inputs; ++i) {
    float* row = factor_.data() + i * inputs;
    for (size_t j = 0; j <= i; ++j) {
      const float* other = factor_.data() + j * inputs;
      const float rest = products_[i * inputs + j] - loops.dot(row, other, (j + 31) / 32 * 32);
      // Only rounding could make a pivot less than the damping left it.
      row[j] = i == j ? std::sqrt(std::max(rest, more)) : rest / other[j];
    }
  }
}

DescentErrors descend(const DescentRows& rows, const DescentGram& gram,
                      const DescentOptions& options) {
  const WeightInfo& info = rows.into.info;
  check(info.format == WeightFormat::int4_group && !rows.into.packed && info.in == gram.inputs() &&
            rows.from.info.in == info.in && rows.from.info.out == info.out,
        "descend: ", rows.from.info.out, " x ", rows.from.info.in, " into ", info.out, " x ",
        info.in, " with products of ", gram.inputs(), " inputs");
  RowDescent row(gram, info.group);
  DescentErrors errors;
  for (int64_t r = rows.first; r < rows.first + rows.rows; ++r) {
    auto* codes = rows.into.values.as<uint8_t>(DType::u8) + r * info.in / 2;
    auto* scales = rows.into.scales.as<uint16_t>(DType::f16) + r * (info.in / info.group);
    widen_row(rows.from, r, row.weights());
    row.read(codes, scales);
    errors.before += row.error();
    row.take_nearest_plane();
    for (int sweep = 0; sweep < options.sweeps; ++sweep) {
      const bool changed = row.improve_codes();
      row.improve_scales();
      if (!changed) break;
    }
    row.improve_codes();
    errors.after += row.error();
    row.write(codes, scales);
  }
  return errors;
}

}  // namespace slip
