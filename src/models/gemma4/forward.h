// The layers of Gemma 4, written once over Ops, for models and drafters.
#pragma once

#include "cache/cache.h"
#include "kernels/ops.h"
#include "models/common/head.h"
#include "models/gemma4/activations.h"
#include "models/gemma4/weights.h"
#include "models/model.h"

namespace slip::gemma4 {

// What every block of one pass shares. A pass may be narrowed to some of a step's rows.
struct Pass {
  const Config& config;
  Ops& ops;
  const Cache& cache;
  Activations& act;
  std::span<const Span> spans;  // of these rows; the first is number 0
  int64_t first_row;            // of the buffers
  int64_t rows;

  View of(const Tensor& tensor) const { return tensor.view.slice(first_row, rows); }
};

// cos and sin for the positions of this pass.
void prepare_rotation(const Pass& pass);

// Before the pass: what it will look up in a table that the backend cannot read itself. Tokens are
// known to the host, so that a pass which may be replayed needs to ask for nothing.
void fetch_per_layer(const PerLayerEmbedding& weights, std::span<const int32_t> ids,
                     const Pass& pass);

// What these layers ask of the largest step. What is already in `limits` stays if it is larger.
void cover_layers(const Config& config, StepLimits& limits);

// Layers [begin, end) on the residual.
void run_layers(std::span<const Layer> layers, size_t begin, size_t end, const Pass& pass);

// From tokens to logits.
void forward(const Weights& weights, const Step& step, const Pass& pass);

}  // namespace slip::gemma4
