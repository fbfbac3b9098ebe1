// The MTP layer (multi-token prediction). It drafts; it never decides.
#include "models/common/head.h"
#include "models/common/step_key.h"
#include "models/qwen3_5/forward.h"
#include "models/qwen3_5/qwen3_5.h"

namespace slip::qwen3_5 {

void Qwen35::draft(const DraftStep& step, Cache& cache) {
  check(weights_.mtp.has_value(), "draft() on a model without an MTP layer");
  const Mtp& mtp = *weights_.mtp;
  const int64_t rows = step.ids.shape[0];
  const StepKey key = step_key(
      this, PassKind::draft, rows, step.outputs,
      {step.ids.data, step.hidden.data, step.logits.data, step.next_hidden.data, step.peaks.data});
  ops_.run_step(key, step.spans, [&] {
    Pass pass{config_, ops_, cache, activations_, step.spans, rows};
    const View residual = activations_.residual.view.first(rows);
    const View joined = activations_.joined.view.first(rows);
    const View hidden = activations_.normed.view.first(rows);
    const float eps = config_.eps;

    prepare_rotation(pass);
    ops_.embed({.ids = step.ids, .table = weights_.embedding, .out = residual});
    ops_.rms_norm({.x = residual, .scale = mtp.embedding_scale, .out = residual, .eps = eps});
    ops_.rms_norm({.x = step.hidden, .scale = mtp.hidden_scale, .out = hidden, .eps = eps});
    ops_.join({.a = residual, .b = hidden, .out = joined});
    ops_.linear({.x = joined, .weight = mtp.fc, .out = residual});
    decoder_layer(mtp.layer, config_.layers.size(), pass);
    const View normed = step.next_hidden.empty() ? hidden : step.next_hidden;
    ops_.rms_norm({.x = residual, .scale = mtp.final_scale, .out = normed, .eps = eps});
    score(ops_, normed, output_rows(step.outputs), weights_.draft_head(),
          {step.logits, step.peaks});
  });
}

}  // namespace slip::qwen3_5
