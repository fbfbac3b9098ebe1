#include <vector>

#include "kernels/ref/decode_row.h"
#include "kernels/ref/ref_ops_impl.h"

namespace slip {

void RefOps::embed(const EmbedArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], hidden = dims["hidden"];
  std::vector<double> values(size_t(hidden), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t id = args.ids.empty() ? r : args.ids.i32()[r];
    dims.require(id >= 0 && id < dims["vocabulary"], "id ", id, " of ", dims["vocabulary"]);
    decode_row(args.table, id, values);
    for (int64_t i = 0; i < hidden; ++i)
      args.out.f32()[r * hidden + i] = float(double(args.factor) * values[size_t(i)]);
  }
}

}  // namespace slip
