// The forward pass of Qwen3.5, written once over Ops.
#pragma once

#include "cache/cache.h"
#include "kernels/ops.h"
#include "models/common/head.h"
#include "models/model.h"
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
  // Rows that a layer's output is computed for. The others leave their keys and values.
  OutputRows wanted{0, rows};
  // Their spans, numbered from the first of them, if attention is to skip the other rows.
  std::span<const Span> wanted_spans{};

  View of(const Tensor& tensor) const { return tensor.view.first(rows); }
  View wanted_of(const Tensor& tensor) const {
    return tensor.view.slice(wanted.first, wanted.count);
  }
};

// cos and sin for the positions of this pass.
void prepare_rotation(const Pass& pass);

// residual += mixer(norm(residual)); residual += mlp(norm(residual)). Delta-net layers compute all
// rows, wanted or not: each needs the ones before it.
void decoder_layer(const Layer& layer, size_t cache_index, const Pass& pass);

// From tokens to logits.
void forward(const Weights& weights, const Step& step, const Pass& pass);

}  // namespace slip::qwen3_5
