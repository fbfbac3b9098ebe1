// Buffers that a forward pass writes, made once for the largest step.
#pragma once

#include <span>

#include "models/common/text_config.h"
#include "tensor/buffer.h"

namespace slip {

// Makes buffers and counts their bytes. Without a memory it only counts.
class BufferMaker {
 public:
  explicit BufferMaker(Memory* memory) : memory_(memory) {}

  Tensor f32(const Shape& shape) { return make(DType::f32, shape); }
  Tensor i32(const Shape& shape) { return make(DType::i32, shape); }
  // Holds these values from the beginning.
  Tensor filled(std::span<const float> values);

  uint64_t bytes() const { return bytes_; }

 private:
  Tensor make(DType dtype, const Shape& shape);

  Memory* memory_;
  uint64_t bytes_ = 0;
};

// Of attention with heads of one size.
struct AttentionBuffers {
  struct Size {
    int64_t q_heads, kv_heads, head_dim;
    int64_t projected_dim;  // values that the query projection gives a head
  };
  AttentionBuffers() = default;
  AttentionBuffers(const Size& size, std::span<const float> rope_frequencies, int64_t rows,
                   BufferMaker& make);

  Tensor projected;    // [rows, q_heads, projected_dim]: the query, and what comes with it
  Tensor q;            // [rows, q_heads, head_dim], normalised and rotated
  Tensor k, v;         // [rows, kv_heads, head_dim]
  Tensor attended;     // [rows, q_heads, head_dim]
  Tensor cos, sin;     // [rows, rotary pairs]
  Tensor frequencies;  // [rotary pairs]
};

// Of the MLPs of a model. `widest` is the width of its widest dense one, 0 if it has none.
struct MlpBuffers {
  MlpBuffers() = default;
  MlpBuffers(const TextConfig& config, int64_t widest, int64_t rows, BufferMaker& make);

  Tensor scratch;         // [values]
  Tensor router_logits;   // [rows, experts]
  Tensor expert_ids;      // i32 [rows, top_k]
  Tensor expert_weights;  // [rows, top_k]
};

}  // namespace slip
