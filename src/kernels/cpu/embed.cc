#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {

void CpuOps::embed(const EmbedArgs& args) {
  check_shapes(args);
  const int64_t rows = args.out.shape[0], hidden = args.out.shape[1];
  for_rows(rows, rows * hidden, [&](int64_t row) {
    cpu_unpack_row(args.table, args.ids.i32()[row], args.out.f32() + row * hidden);
  });
}

}  // namespace slip
