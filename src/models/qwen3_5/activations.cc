#include "models/qwen3_5/activations.h"

#include "kernels/args.h"

namespace slip::qwen3_5 {
namespace {

int64_t mlp_scratch_values(const Config& config, int64_t rows) {
  if (!config.experts) return 2 * rows * config.mlp_width;
  return experts_scratch_values(rows, config.experts->top_k, config.experts->width,
                                config.experts->shared_width, config.hidden);
}

}  // namespace

Activations::Activations(const Config& config, int64_t rows, Memory& memory) : max_rows(rows) {
  const auto f32 = [&](const Shape& shape) { return Tensor(memory, DType::f32, shape); };
  const AttentionConfig& attention = config.attention;
  const DeltaNetConfig& delta = config.delta_net;
  const int64_t pairs = attention.rotary_dims / 2;
  residual = f32({rows, config.hidden});
  normed = f32({rows, config.hidden});
  cos = f32({rows, pairs});
  sin = f32({rows, pairs});
  frequencies = f32({pairs});
  const std::vector<float> rope = rope_frequencies(config);
  memory.upload(frequencies.view.data, rope.data(), rope.size() * sizeof(float));

  q_and_gate = f32({rows, attention.q_heads, 2 * attention.head_dim});
  q = f32({rows, attention.q_heads, attention.head_dim});
  k = f32({rows, attention.kv_heads, attention.head_dim});
  v = f32({rows, attention.kv_heads, attention.head_dim});
  attended = f32({rows, attention.q_heads, attention.head_dim});

  qkv = f32({rows, delta.conv_channels()});
  qkv_conv = f32({rows, delta.conv_channels()});
  z = f32({rows, delta.value_heads, delta.value_dim});
  a = f32({rows, delta.value_heads});
  b = f32({rows, delta.value_heads});
  delta_out = f32({rows, delta.value_heads, delta.value_dim});

  const int64_t experts = config.experts ? config.experts->experts : 0;
  const int64_t top_k = config.experts ? config.experts->top_k : 0;
  router_logits = f32({rows, experts});
  expert_ids = Tensor(memory, DType::i32, {rows, top_k});
  expert_weights = f32({rows, top_k});
  shared_gate = f32({rows, 1});
  mlp_scratch = f32({mlp_scratch_values(config, rows)});

  joined = f32({rows, 2 * config.hidden});
}

uint64_t Activations::bytes() const {
  uint64_t total = 0;
  for (const Tensor* tensor : {&residual,
                               &normed,
                               &cos,
                               &sin,
                               &frequencies,
                               &q_and_gate,
                               &q,
                               &k,
                               &v,
                               &attended,
                               &qkv,
                               &qkv_conv,
                               &z,
                               &a,
                               &b,
                               &delta_out,
                               &router_logits,
                               &expert_ids,
                               &expert_weights,
                               &shared_gate,
                               &mlp_scratch,
                               &joined})
    total += tensor->buffer.size();
  return total;
}

uint64_t activation_bytes(const Config& config, int64_t max_rows) {
  // Pages of the host cost nothing until they are written, so making one is the exact answer.
  return Activations(config, max_rows, host_memory()).bytes();
}

}  // namespace slip::qwen3_5
