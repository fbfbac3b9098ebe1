// Every buffer a forward pass writes, made once for the largest step.
#pragma once

#include "models/qwen3_5/config.h"
#include "tensor/buffer.h"

namespace slip::qwen3_5 {

struct Activations {
  Activations(const Config& config, int64_t max_rows, Memory& memory);

  uint64_t bytes() const;

  int64_t max_rows;
  Tensor residual;     // [rows, hidden]
  Tensor normed;       // [rows, hidden]
  Tensor cos, sin;     // [rows, rotary pairs]
  Tensor frequencies;  // [rotary pairs]

  // Attention
  Tensor q_and_gate;  // [rows, q_heads, 2 * head_dim]
  Tensor q;           // [rows, q_heads, head_dim]
  Tensor k, v;        // [rows, kv_heads, head_dim]
  Tensor attended;    // [rows, q_heads, head_dim]

  // Delta net
  Tensor qkv, qkv_conv;  // [rows, channels]
  Tensor z;              // [rows, value_heads, value_dim]
  Tensor a, b;           // [rows, value_heads]
  Tensor delta_out;      // [rows, value_heads, value_dim]

  // MLP
  Tensor router_logits;   // [rows, experts]
  Tensor expert_ids;      // i32 [rows, top_k]
  Tensor expert_weights;  // [rows, top_k]
  Tensor shared_gate;     // [rows, 1]
  Tensor mlp_scratch;     // [values]

  // MTP
  Tensor joined;  // [rows, 2 * hidden]: normed embedding, normed hidden state
};

// What Activations would take, without making them.
uint64_t activation_bytes(const Config& config, int64_t max_rows);

}  // namespace slip::qwen3_5
