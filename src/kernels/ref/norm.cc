#include "kernels/ref/ref_ops_impl.h"
#include "kernels/ref/scalar.h"

namespace slip {

void RefOps::rms_norm(const RmsNormArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], dim = dims["dim"];
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = args.x.f32() + r * dim;
    float* out = args.out.f32() + r * dim;
    const double inverse = inverse_rms(x, dim, args.eps);
    for (int64_t i = 0; i < dim; ++i) {
      const double scale = args.scale.empty() ? 1 : double(args.scale.f32()[i]);
      const double before = args.add ? double(out[i]) : 0;
      out[i] = float(double(args.factor) * (before + double(x[i]) * inverse * scale));
    }
  }
}

void RefOps::gated_rms_norm(const GatedRmsNormArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t heads = dims["rows"] * dims["heads"], dim = dims["dim"];
  for (int64_t h = 0; h < heads; ++h) {
    const float* x = args.x.f32() + h * dim;
    const float* gate = args.gate.f32() + h * dim;
    float* out = args.out.f32() + h * dim;
    const double inverse = inverse_rms(x, dim, args.eps);
    for (int64_t i = 0; i < dim; ++i)
      out[i] = float(double(x[i]) * inverse * double(args.scale.f32()[i]) * silu(gate[i]));
  }
}

}  // namespace slip
