// Every buffer a forward pass writes, made once for the largest step.
#pragma once

#include "models/common/pass_buffers.h"
#include "models/qwen3_5/config.h"

namespace slip::qwen3_5 {

struct Activations {
  // Without a memory nothing is made, and `bytes` is what it would take.
  Activations(const Config& config, int64_t max_rows, Memory* memory);

  int64_t max_rows;
  uint64_t bytes = 0;
  Tensor residual;             // [rows, hidden]
  Tensor normed;               // [rows, hidden]
  AttentionBuffers attention;  // the projection gives each head its query, then its gate
  MlpBuffers mlp;
  Tensor shared_gate;  // [rows, 1]

  // Delta net
  Tensor qkv, qkv_conv;  // [rows, channels]
  Tensor z;              // [rows, value_heads, value_dim]
  Tensor a, b;           // [rows, value_heads]
  Tensor delta_out;      // [rows, value_heads, value_dim]

  // MTP
  Tensor joined;  // [rows, 2 * hidden]: normed embedding, normed hidden state
};

}  // namespace slip::qwen3_5
