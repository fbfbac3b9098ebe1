#include <algorithm>

#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {

void CpuOps::gated_mul(const GatedMulArgs& args) {
  check_shapes(args);
  const int64_t rows = args.gate.shape[0], width = args.gate.shape[1];
  const int64_t up_width = args.up.shape[1];
  const auto multiply = activation_loop(args.activation);
  for_rows(rows, rows * width, [&](int64_t row) {
    multiply(args.gate.f32() + row * width, args.up.f32() + row * up_width + args.first_column,
             width, args.out.f32() + row * width);
  });
}

void CpuOps::soft_cap(const SoftCapArgs& args) {
  check_shapes(args);
  // Rows are as long as a vocabulary, and few.
  const int64_t values = args.x.count();
  constexpr int64_t kPart = 4096;
  for_rows((values + kPart - 1) / kPart, values, [&](int64_t part) {
    loops_.soft_cap(args.cap, std::min(kPart, values - part * kPart), args.x.f32() + part * kPart);
  });
}

void CpuOps::gate_heads(const GateHeadsArgs& args) {
  check_shapes(args);
  const int64_t rows = args.x.shape[0], heads = args.x.shape[1], dim = args.x.shape[2];
  for_rows(rows, rows * heads * dim, [&](int64_t row) {
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t index = row * heads + head;
      loops_.sigmoid_mul(args.q_and_gate.f32() + index * 2 * dim + dim, dim,
                         args.x.f32() + index * dim);
    }
  });
}

}  // namespace slip
