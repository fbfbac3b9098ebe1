// Some of a model's weights while they are declared: how their names begin, and what matrices
// become where the source holds 16 or 32 bits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/args.h"
#include "models/common/text_config.h"
#include "weights/weight_table.h"

namespace slip {

struct WeightPart {
  WeightTable& table;
  std::string prefix{};
  std::optional<WeightFormat> format{};

  WeightPart in(const std::string& name) const { return {table, prefix + name, format}; }
  WeightPart as(std::optional<WeightFormat> other) const { return {table, prefix, other}; }

  void matrix(const std::string& name, int64_t rows, int64_t columns, Weight* into) const;
  void vector(const std::string& name, const Shape& shape, View* into,
              float (*map)(float) = nullptr) const;
  // gate_proj, up_proj and down_proj under the prefix.
  void mlp(int64_t hidden, int64_t width, GatedMlp& into) const;
  // The same of every expert, under "experts.0." and so on.
  void experts(int64_t hidden, const ExpertsConfig& config, std::vector<GatedMlp>& into) const;
};

inline std::optional<WeightFormat> format_if(bool chosen, WeightFormat format) {
  return chosen ? std::optional(format) : std::nullopt;
}

}  // namespace slip
