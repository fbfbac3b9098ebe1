#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {

void CpuOps::silu_mul(const SiluMulArgs& args) {
  check_shapes(args);
  const int64_t rows = args.gate.shape[0], width = args.gate.shape[1];
  for_rows(rows, rows * width, [&](int64_t row) {
    loops_.silu_mul(args.gate.f32() + row * width, args.up.f32() + row * width, width,
                    args.out.f32() + row * width);
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
