// The MTP layer: qwen35.md calls it multi-token prediction. It drafts; it never decides.
#include <cstring>

#include "models/qwen3_5/forward.h"
#include "models/qwen3_5/qwen3_5.h"

namespace slip::qwen3_5 {

void Qwen35::draft(const DraftStep& step, Cache& cache) {
  check(weights_.mtp.has_value(), "draft() on a model without an MTP layer");
  const Mtp& mtp = *weights_.mtp;
  const int64_t rows = step.ids.shape[0];
  const int64_t hidden = config_.hidden;
  Pass pass{config_, ops_, cache, activations_, step.spans, rows};
  const View residual = activations_.residual.view.first(rows);
  const View normed = activations_.normed.view.first(rows);
  const View joined = activations_.joined.view.first(rows);

  prepare_rotation(pass);
  ops_.embed({.ids = step.ids, .table = weights_.embedding, .out = residual});
  ops_.rms_norm({.x = residual, .scale = mtp.embedding_scale, .out = residual, .eps = config_.eps});
  ops_.rms_norm({.x = step.hidden, .scale = mtp.hidden_scale, .out = normed, .eps = config_.eps});
  for (int64_t row = 0; row < rows; ++row) {
    float* out = joined.f32() + row * 2 * hidden;
    std::memcpy(out, residual.f32() + row * hidden, size_t(hidden) * sizeof(float));
    std::memcpy(out + hidden, normed.f32() + row * hidden, size_t(hidden) * sizeof(float));
  }
  ops_.linear({.x = joined, .weight = mtp.fc, .out = residual});
  decoder_layer(mtp.layer, config_.layers.size(), pass);
  ops_.rms_norm({.x = residual, .scale = mtp.final_scale, .out = normed, .eps = config_.eps});
  project(normed, step.outputs, weights_.draft_head(), step.logits);
  if (!step.next_hidden.empty()) std::memcpy(step.next_hidden.data, normed.data, normed.bytes());
}

}  // namespace slip::qwen3_5
