// Every buffer a forward pass writes, made once for the largest step.
#pragma once

#include "models/gemma4/config.h"
#include "tensor/buffer.h"

namespace slip::gemma4 {

// Of layers of one kind. Keys and values stay until the end of the pass: later layers may read
// them.
struct KindActivations {
  Tensor raw_q;        // [rows, q_heads, head_dim]
  Tensor q;            // [rows, q_heads, head_dim], normalised and rotated
  Tensor k, v;         // [rows, kv_heads, head_dim]
  Tensor attended;     // [rows, q_heads, head_dim]
  Tensor cos, sin;     // [rows, head_dim / 2]
  Tensor frequencies;  // [head_dim / 2]
};

struct Activations {
  Activations(const Config& config, int64_t max_rows, Memory& memory);

  uint64_t bytes() const;
  KindActivations& of(LayerKind kind) { return kinds[size_t(kind)]; }

  int64_t max_rows;
  Tensor residual;  // [rows, hidden]
  Tensor normed;    // [rows, hidden]
  Tensor branch;    // [rows, hidden]: what is to be added to the residual
  std::array<KindActivations, 2> kinds;

  // MLP
  Tensor mlp_scratch;     // [values]
  Tensor router_logits;   // [rows, experts]
  Tensor expert_ids;      // i32 [rows, top_k]
  Tensor expert_weights;  // [rows, top_k]
  Tensor expert_out;      // [rows, hidden], with experts

  // Per-layer embeddings
  Tensor per_layer;          // [rows, layers * ple_width]
  Tensor per_layer_context;  // [rows, layers * ple_width]
  Tensor per_layer_gate;     // [rows, ple_width]
};

}  // namespace slip::gemma4
