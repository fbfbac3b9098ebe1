#include "models/gemma4/activations.h"

namespace slip::gemma4 {

Activations::Activations(const Config& config, int64_t rows, Memory* memory) : max_rows(rows) {
  BufferMaker make(memory);
  residual = make.f32({rows, config.hidden});
  inner_residual = make.f32({rows, config.hidden});
  normed = make.f32({rows, config.hidden});
  branch = make.f32({rows, config.hidden});
  for (const LayerKind which : kKinds) {
    const KindConfig& kind = config.kind(which);
    of(which) = AttentionBuffers({config.q_heads, kind.kv_heads, kind.head_dim, kind.head_dim},
                                 rope_frequencies(kind), rows, make);
  }
  mlp = MlpBuffers(config, config.widest_mlp(), rows, make);
  if (config.experts)
    for (Tensor* tensor : {&router_in, &expert_in, &expert_out})
      *tensor = make.f32({rows, config.hidden});
  if (config.ple_width > 0) {
    per_layer = make.f32({rows, config.ple_values()});
    per_layer_context = make.f32({rows, config.ple_values()});
    per_layer_gate = make.f32({rows, config.ple_width});
  }
  output_spans.reserve(size_t(rows));
  bytes = make.bytes();
}

}  // namespace slip::gemma4
