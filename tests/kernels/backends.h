// The backends that the ops_equal tests hold against the reference.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/ops.h"

namespace slip {

// What a backend may do to the numbers. Everything else follows from the formats.
struct OpTolerance {
  // int4 and int8 weights meet activations rounded to int8, one scale per row and 128 inputs.
  bool int8_activations = false;
  // Relative error of exp, sigmoid and the like, in units of a float's roundoff.
  double exp_ulps = 8;
  // gated_mlp and experts equal Ops' composition bit for bit. Off: within the bound of the formats.
  bool fused_is_exact = true;
  // delta_net gives the same bits in one call or row by row, up to so many rows per span.
  int64_t exact_delta_rows = 8;
};

struct NamedOps {
  std::string name;  // letters and digits: part of a test's name
  std::function<std::unique_ptr<Ops>()> make;
  OpTolerance tolerance;
};

inline std::ostream& operator<<(std::ostream& out, const NamedOps& ops) { return out << ops.name; }

std::vector<NamedOps> backends_under_test();

}  // namespace slip
