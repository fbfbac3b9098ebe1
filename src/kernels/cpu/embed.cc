#include "kernels/cpu/cpu_ops_impl.h"
#include "quant/widen_row.h"

namespace slip {

void CpuOps::embed(const EmbedArgs& args) {
  check_shapes(args);
  const int64_t rows = args.out.shape[0], hidden = args.out.shape[1];
  for_rows(rows, rows * hidden, [&](int64_t row) {
    float* out = args.out.f32() + row * hidden;
    const int64_t id = args.ids.empty() ? row : args.ids.i32()[row];
    if (args.table.packed) {
      cpu_unpack_row(args.table, id, out);
    } else {
      widen_row(args.table, id, {out, size_t(hidden)});
    }
    if (args.factor != 1) loops_.scale(args.factor, hidden, out);
  });
}

}  // namespace slip
