// Every buffer a forward pass writes, made once for the largest step.
#pragma once

#include "models/common/pass_buffers.h"
#include "models/gemma4/config.h"

namespace slip::gemma4 {

struct Activations {
  // Without a memory nothing is made, and `bytes` is what it would take.
  Activations(const Config& config, int64_t max_rows, Memory* memory);

  AttentionBuffers& of(LayerKind kind) { return kinds[size_t(kind)]; }

  int64_t max_rows;
  uint64_t bytes = 0;
  // The residual between layers, and within one, behind its attention: a backend can let a branch
  // join on its way into what reads the sum only if it does not have to be the same place.
  Tensor residual, inner_residual;  // [rows, hidden]
  Tensor normed;                    // [rows, hidden]
  Tensor branch;                    // [rows, hidden]: what is to be added to the residual
  // Keys and values stay until the end of the pass: later layers may read them.
  std::array<AttentionBuffers, 2> kinds;
  MlpBuffers mlp;
  Tensor router_in, expert_in, expert_out;  // [rows, hidden], with experts

  // Per-layer embeddings
  Tensor per_layer;                // [rows, layers * ple_width]
  Tensor per_layer_context;        // [rows, layers * ple_width]; before that, rows of the table
  Tensor per_layer_gate;           // [rows, ple_width]
  std::vector<Span> output_spans;  // of rows whose logits are wanted, while a step runs
};

}  // namespace slip::gemma4
