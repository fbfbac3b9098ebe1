// Attention with normalised queries and keys.
#pragma once

#include "kernels/args.h"

namespace slip {

// Weights that a layer does without are empty.
struct AttentionWeights {
  Weight q;  // [q_heads * head_dim, hidden]; with a gate twice as many rows: per head query, gate
  Weight k, v;   // [kv_heads * head_dim, hidden]
  Weight o;      // [hidden, q_heads * head_dim]
  View q_scale;  // [head_dim]
  View k_scale;  // [head_dim]
};

}  // namespace slip
