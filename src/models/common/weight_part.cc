#include "models/common/weight_part.h"

namespace slip {

void WeightPart::matrix(const std::string& name, int64_t rows, int64_t columns,
                        Weight* into) const {
  table.add_linear({.name = prefix + name,
                    .module = prefix + name,
                    .out = rows,
                    .in = columns,
                    .recoding = {.format = format}},
                   into);
}

void WeightPart::vector(const std::string& name, const Shape& shape, View* into,
                        float (*map)(float)) const {
  table.add_vector(prefix + name, shape, into, map);
}

void WeightPart::mlp(int64_t hidden, int64_t width, GatedMlp& into) const {
  matrix("gate_proj", width, hidden, &into.gate);
  matrix("up_proj", width, hidden, &into.up);
  matrix("down_proj", hidden, width, &into.down);
}

void WeightPart::experts(int64_t hidden, const ExpertsConfig& config,
                         std::vector<GatedMlp>& into) const {
  into.resize(size_t(config.experts));
  for (size_t e = 0; e < into.size(); ++e)
    in(cat("experts.", e, ".")).mlp(hidden, config.width, into[e]);
}

}  // namespace slip
