#include "models/common/pass_buffers.h"

#include <algorithm>

#include "kernels/args.h"

namespace slip {
namespace {

int64_t mlp_scratch_values(const TextConfig& config, int64_t widest, int64_t rows) {
  const int64_t dense = 2 * rows * widest;
  if (!config.experts) return dense;
  const ExpertsConfig& experts = *config.experts;
  return std::max(dense, experts_scratch_values(rows, experts.top_k, experts.width,
                                                experts.shared_width, config.hidden));
}

}  // namespace

Tensor BufferMaker::make(DType dtype, const Shape& shape) {
  bytes_ += uint64_t(shape.count()) * bytes_per_value(dtype);
  return memory_ ? Tensor(*memory_, dtype, shape) : Tensor();
}

Tensor BufferMaker::filled(std::span<const float> values) {
  Tensor made = f32({int64_t(values.size())});
  if (memory_) memory_->upload(made.view.data, values.data(), values.size_bytes());
  return made;
}

AttentionBuffers::AttentionBuffers(const Size& size, std::span<const float> rope_frequencies,
                                   int64_t rows, BufferMaker& make) {
  projected = make.f32({rows, size.q_heads, size.projected_dim});
  q = make.f32({rows, size.q_heads, size.head_dim});
  k = make.f32({rows, size.kv_heads, size.head_dim});
  v = make.f32({rows, size.kv_heads, size.head_dim});
  attended = make.f32({rows, size.q_heads, size.head_dim});
  frequencies = make.filled(rope_frequencies);
  cos = make.f32({rows, int64_t(rope_frequencies.size())});
  sin = make.f32({rows, int64_t(rope_frequencies.size())});
}

MlpBuffers::MlpBuffers(const TextConfig& config, int64_t widest, int64_t rows, BufferMaker& make) {
  scratch = make.f32({mlp_scratch_values(config, widest, rows)});
  if (!config.experts) return;
  router_logits = make.f32({rows, config.experts->experts});
  expert_ids = make.i32({rows, config.experts->top_k});
  expert_weights = make.f32({rows, config.experts->top_k});
}

}  // namespace slip
