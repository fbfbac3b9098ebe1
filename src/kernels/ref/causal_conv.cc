#include <algorithm>
#include <vector>

#include "kernels/ref/ref_ops_impl.h"
#include "kernels/ref/scalar.h"

namespace slip {

void RefOps::causal_conv(const CausalConvArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t channels = dims["channels"], width = dims["width"];
  const int64_t tail_len = width - 1;
  for (const Span& span : args.spans) {
    const float* x = args.x.f32() + span.first_row * channels;
    float* out = args.out.f32() + span.first_row * channels;
    float* tail = args.tail.f32() + span.state_slot * dims["tail rows"] * channels;

    // The tail, moved on by what is replayed, and the span's inputs as one sequence; row t of the
    // span is inputs[t + tail_len].
    const float* moved = tail + span.replay * channels;
    std::vector<float> inputs(moved, moved + tail_len * channels);
    inputs.insert(inputs.end(), x, x + span.rows * channels);

    for (int64_t t = 0; t < span.rows; ++t) {
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t m = 0; m < width; ++m)
          sum += double(args.weight.f32()[m * channels + c]) *
                 double(inputs[size_t((t + m) * channels + c)]);
        out[t * channels + c] = float(silu(sum));
      }
    }
    // All of it when rows may be rejected, else the last inputs.
    std::copy(inputs.begin() + (span.record ? 0 : span.rows * channels), inputs.end(), tail);
  }
}

}  // namespace slip
