#include <cmath>
#include <vector>

#include "kernels/ref/ref_ops_impl.h"

namespace slip {

// The order of logits is the order of their softmax, and the renormalised weights are the softmax
// over the chosen ones.
void RefOps::route(const RouteArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], experts = dims["experts"], top_k = dims["top_k"];
  for (int64_t r = 0; r < rows; ++r) {
    const float* logits = args.logits.f32() + r * experts;
    int32_t* ids = args.ids.i32() + r * top_k;
    float* weights = args.weights.f32() + r * top_k;
    std::vector<bool> taken(size_t(experts), false);
    for (int64_t rank = 0; rank < top_k; ++rank) {
      int64_t best = -1;
      for (int64_t e = 0; e < experts; ++e)
        if (!taken[size_t(e)] && (best < 0 || logits[e] > logits[best])) best = e;
      taken[size_t(best)] = true;
      ids[rank] = int32_t(best);
    }
    double sum = 0;
    for (int64_t rank = 0; rank < top_k; ++rank)
      sum += std::exp(double(logits[ids[rank]]) - double(logits[ids[0]]));
    for (int64_t rank = 0; rank < top_k; ++rank) {
      const double scale = args.scales.empty() ? 1 : double(args.scales.f32()[ids[rank]]);
      weights[rank] =
          float(std::exp(double(logits[ids[rank]]) - double(logits[ids[0]])) / sum * scale);
    }
  }
}

}  // namespace slip
