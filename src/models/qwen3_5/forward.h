// The forward pass of Qwen3.5, written once over Ops.
#pragma once

#include "cache/cache.h"
#include "kernels/ops.h"
#include "models/qwen3_5/activations.h"
#include "models/qwen3_5/weights.h"

namespace slip::qwen3_5 {

// What every block of one pass shares.
struct Pass {
  const Config& config;
  Ops& ops;
  Cache& cache;
  Activations& act;
  std::span<const Span> spans;
  int64_t rows;

  View of(const Tensor& tensor) const { return tensor.view.first(rows); }
};

// cos and sin for the positions of this pass.
void prepare_rotation(const Pass& pass);

// residual += mixer(norm(residual)); residual += mlp(norm(residual))
void decoder_layer(const Layer& layer, size_t cache_index, const Pass& pass);

}  // namespace slip::qwen3_5
