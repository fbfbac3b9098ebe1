#include "kernels/ref/ref_ops_impl.h"
#include "kernels/ref/scalar.h"

namespace slip {

void RefOps::silu_mul(const SiluMulArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t count = dims["rows"] * dims["width"];
  for (int64_t i = 0; i < count; ++i)
    args.out.f32()[i] = float(silu(args.gate.f32()[i]) * double(args.up.f32()[i]));
}

void RefOps::gate_heads(const GateHeadsArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t heads = dims["rows"] * dims["heads"], dim = dims["dim"];
  for (int64_t h = 0; h < heads; ++h) {
    float* x = args.x.f32() + h * dim;
    const float* gate = args.q_and_gate.f32() + h * 2 * dim + dim;
    for (int64_t i = 0; i < dim; ++i) x[i] = float(double(x[i]) * sigmoid(gate[i]));
  }
}

}  // namespace slip
