// The backends that the ops_equal tests hold against the reference.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/ops.h"

namespace slip {

// What a backend may do to the numbers. Everything else follows from the formats.
struct OpTolerance {
  // int4 and int8 weights meet activations rounded to integers: up to so many steps from zero to
  // the largest of a row's 128 inputs, or of a group of the weight where that has less. 0: not
  // rounded.
  int activation_steps = 0;
  // fp8, int8 and int4 weights, and large ones of bf16 and f16, meet activations rounded to f16, in
  // units of a power of two for each row and 128 inputs.
  bool f16_activations = false;
  // Relative error of exp, sigmoid and the like, in units of a float's roundoff.
  double exp_ulps = 8;
  // gated_mlp and experts equal Ops' composition bit for bit. Off: within the bound of the formats.
  bool fused_is_exact = true;
  // linear, experts and attention give a row the same bits in steps of up to so many rows. Longer
  // ones are no decode steps, and may be computed in another way, within the bound of the formats.
  int64_t invariant_rows = std::numeric_limits<int64_t>::max();
  // delta_net gives the same bits in one call or row by row, up to so many rows per span.
  int64_t exact_delta_rows = 8;
};

// Steps of the CPU's activations of one and of two bytes.
inline constexpr int kByteSteps = 127, kTwoByteSteps = 127 * 256;

struct NamedOps {
  std::string name;  // letters and digits: part of a test's name
  // Fails where the machine does not have what the backend runs on; tests are skipped then.
  std::function<Result<std::unique_ptr<Ops>>()> make;
  OpTolerance tolerance;
  // Hundreds of times as slow as what it stands for: the longest tests take fewer sizes.
  bool slow = false;
};

inline std::ostream& operator<<(std::ostream& out, const NamedOps& ops) { return out << ops.name; }

std::vector<NamedOps> backends_under_test();

// Those of them that are meant to be fast.
std::vector<NamedOps> fast_backends();

// Those on the CPU, and those that do the work of several operations at once where most compose
// it: CUDA, and what stands in for it.
std::vector<NamedOps> cpu_backends();
std::vector<NamedOps> fusing_backends();

// CPU backends whose activations have one byte, and a reference that rounds alike. Only linear
// layers differ from those above.
std::vector<NamedOps> byte_backends();

// Large as `f16_activations` means it.
inline bool is_large(const WeightInfo& info) { return info.out >= 512 && info.in >= 512; }

}  // namespace slip
