#include "models/gemma4/activations.h"

#include <algorithm>

#include "kernels/args.h"

namespace slip::gemma4 {
namespace {

int64_t widest_mlp(const Config& config) {
  int64_t widest = 0;
  for (const LayerConfig& layer : config.layers) widest = std::max(widest, layer.mlp_width);
  return widest;
}

int64_t mlp_scratch_values(const Config& config, int64_t rows) {
  const int64_t dense = 2 * rows * widest_mlp(config);
  if (!config.experts) return dense;
  return std::max(dense, experts_scratch_values(rows, config.experts->top_k, config.experts->width,
                                                0, config.hidden));
}

KindActivations make_kind(const Config& config, const KindConfig& kind, int64_t rows,
                          Memory& memory) {
  const auto f32 = [&](const Shape& shape) { return Tensor(memory, DType::f32, shape); };
  KindActivations made;
  made.raw_q = f32({rows, config.q_heads, kind.head_dim});
  made.q = f32({rows, config.q_heads, kind.head_dim});
  made.k = f32({rows, kind.kv_heads, kind.head_dim});
  made.v = f32({rows, kind.kv_heads, kind.head_dim});
  made.attended = f32({rows, config.q_heads, kind.head_dim});
  made.cos = f32({rows, kind.head_dim / 2});
  made.sin = f32({rows, kind.head_dim / 2});
  made.frequencies = f32({kind.head_dim / 2});
  const std::vector<float> rope = rope_frequencies(kind);
  memory.upload(made.frequencies.view.data, rope.data(), rope.size() * sizeof(float));
  return made;
}

uint64_t sum_of(std::initializer_list<const Tensor*> tensors) {
  uint64_t total = 0;
  for (const Tensor* tensor : tensors) total += tensor->buffer.size();
  return total;
}

}  // namespace

Activations::Activations(const Config& config, int64_t rows, Memory& memory) : max_rows(rows) {
  const auto f32 = [&](const Shape& shape) { return Tensor(memory, DType::f32, shape); };
  residual = f32({rows, config.hidden});
  normed = f32({rows, config.hidden});
  branch = f32({rows, config.hidden});
  for (const LayerKind kind : kKinds) of(kind) = make_kind(config, config.kind(kind), rows, memory);
  mlp_scratch = f32({mlp_scratch_values(config, rows)});
  if (config.experts) {
    router_logits = f32({rows, config.experts->experts});
    expert_ids = Tensor(memory, DType::i32, {rows, config.experts->top_k});
    expert_weights = f32({rows, config.experts->top_k});
    expert_out = f32({rows, config.hidden});
  }
  if (config.ple_width > 0) {
    per_layer = f32({rows, config.ple_values()});
    per_layer_context = f32({rows, config.ple_values()});
    per_layer_gate = f32({rows, config.ple_width});
  }
}

uint64_t Activations::bytes() const {
  uint64_t total =
      sum_of({&residual, &normed, &branch, &mlp_scratch, &router_logits, &expert_ids,
              &expert_weights, &expert_out, &per_layer, &per_layer_context, &per_layer_gate});
  for (const KindActivations& kind : kinds)
    total += sum_of({&kind.raw_q, &kind.q, &kind.k, &kind.v, &kind.attended, &kind.cos, &kind.sin,
                     &kind.frequencies});
  return total;
}

}  // namespace slip::gemma4
