#include "kernels/cpu/norm.h"

#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {

void CpuOps::rms_norm(const RmsNormArgs& args) {
  check_shapes(args);
  const int64_t rows = args.x.shape[0], dim = args.x.shape[1];
  for_rows(rows, rows * dim, [&](int64_t row) {
    loops_.rms_norm({.x = args.x.f32() + row * dim,
                     .scale = args.scale.empty() ? nullptr : args.scale.f32(),
                     .count = dim,
                     .eps = args.eps,
                     .out = args.out.f32() + row * dim,
                     .add = args.add,
                     .factor = args.factor});
  });
}

void CpuOps::gated_rms_norm(const GatedRmsNormArgs& args) {
  check_shapes(args);
  const int64_t rows = args.x.shape[0], heads = args.x.shape[1], dim = args.x.shape[2];
  for_rows(rows, rows * heads * dim, [&](int64_t row) {
    for (int64_t head = 0; head < heads; ++head) gated_norm_head(args, row, head, loops_);
  });
}

}  // namespace slip
