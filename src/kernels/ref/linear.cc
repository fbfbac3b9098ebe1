#include <vector>

#include "kernels/ref/decode_row.h"
#include "kernels/ref/ref_ops_impl.h"

namespace slip {
namespace {

// Four running sums instead of one: a single chain of additions waits four cycles for each, which
// makes the tests that run a whole model on the reference several times slower.
double dot(const std::vector<double>& a, const float* b) {
  double sums[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= a.size(); i += 4)
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * double(b[i + lane]);
  for (; i < a.size(); ++i) sums[0] += a[i] * double(b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

void RefOps::linear(const LinearArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], in = dims["in"], out = dims["out"];
  const float* x = args.x.f32();
  float* y = args.out.f32();
  std::vector<double> weights(size_t(in), 0.0);
  for (int64_t o = 0; o < out; ++o) {
    decode_row(args.weight, o, weights);
    for (int64_t r = 0; r < rows; ++r) {
      const double sum = dot(weights, x + r * in);
      float& result = y[r * out + o];
      result = float(args.add ? double(result) + sum : sum);
    }
  }
}

}  // namespace slip
