#include "models/qwen3_5/activations.h"

namespace slip::qwen3_5 {

Activations::Activations(const Config& config, int64_t rows, Memory* memory) : max_rows(rows) {
  BufferMaker make(memory);
  const AttentionConfig& heads = config.attention;
  const DeltaNetConfig& delta = config.delta_net;
  residual = make.f32({rows, config.hidden});
  normed = make.f32({rows, config.hidden});
  attention = AttentionBuffers({heads.q_heads, heads.kv_heads, heads.head_dim, 2 * heads.head_dim},
                               rope_frequencies(config), rows, make);
  mlp = MlpBuffers(config, config.mlp_width, rows, make);
  shared_gate = make.f32({rows, 1});

  qkv = make.f32({rows, delta.conv_channels()});
  qkv_conv = make.f32({rows, delta.conv_channels()});
  z = make.f32({rows, delta.value_heads, delta.value_dim});
  a = make.f32({rows, delta.value_heads});
  b = make.f32({rows, delta.value_heads});
  delta_out = make.f32({rows, delta.value_heads, delta.value_dim});

  joined = make.f32({rows, 2 * config.hidden});
  bytes = make.bytes();
}

}  // namespace slip::qwen3_5
