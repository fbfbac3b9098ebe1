#include "kernels/ref/ref_ops_impl.h"
#include "kernels/ref/scalar.h"

namespace slip {

void RefOps::gated_mul(const GatedMulArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], width = dims["width"];
  for (int64_t r = 0; r < rows; ++r) {
    const float* up = args.up.f32() + r * dims["up_width"] + args.first_column;
    for (int64_t i = 0; i < width; ++i) {
      const double gate = activate(args.activation, double(args.gate.f32()[r * width + i]));
      args.out.f32()[r * width + i] = float(gate * double(up[i]));
    }
  }
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
