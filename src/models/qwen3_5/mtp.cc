#include "models/qwen3_5/forward.h"
#include "models/qwen3_5/qwen3_5.h"

namespace slip::qwen3_5 {

MtpDrafter::MtpDrafter(const PassOwner& model, const Config& config, const Weights& weights,
                       Activations& activations)
    : model_(model), config_(config), weights_(weights), activations_(activations) {
  output_spans_.reserve(size_t(model.max_rows));
}

void MtpDrafter::draft(std::span<const DraftStep> steps, Cache& cache) {
  run_passes(model_, steps, [&](const DraftStep& step) { draft_once(step, cache); });
}

void MtpDrafter::draft_once(const DraftStep& step, Cache& cache) {
  const Mtp& mtp = *weights_.mtp;
  Ops& ops = model_.ops;
  // Rows before those that draft only leave keys for them.
  const OutputRows outputs = output_rows(step.outputs);
  const int64_t rows = step.ids.shape[0];
  Pass pass{config_, ops, cache, activations_, step.spans, rows, outputs};
  // Attention skips them, too, unless the backend records the step, with its own spans. In a coded
  // cache rows read those just before them uncoded, skipped ones in the tail, which holds a page.
  const bool tail_has_others = !cache.coded() || rows <= kPageLen;
  if (outputs.count > 0 && outputs.count < rows && tail_has_others && !ops.records(rows)) {
    narrow(step.spans, outputs, output_spans_);
    pass.wanted_spans = output_spans_;
  }
  const View residual = pass.of(activations_.residual), joined = pass.of(activations_.joined);
  const View hidden = pass.of(activations_.normed);
  const float eps = config_.eps;

  prepare_rotation(pass);
  ops.embed({.ids = step.ids, .table = weights_.embedding, .out = residual});
  ops.rms_norm({.x = residual, .scale = mtp.embedding_scale, .out = residual, .eps = eps});
  ops.rms_norm({.x = step.hidden, .scale = mtp.hidden_scale, .out = hidden, .eps = eps});
  ops.join({.a = residual, .b = hidden, .out = joined});
  ops.linear({.x = joined, .weight = mtp.fc, .out = residual});
  decoder_layer(mtp.layer, config_.layers.size(), pass);
  if (outputs.count == 0) return;
  const View normed =
      step.next_hidden.empty() ? hidden.slice(outputs.first, outputs.count) : step.next_hidden;
  ops.rms_norm({.x = pass.wanted_of(activations_.residual),
                .scale = mtp.final_scale,
                .out = normed,
                .eps = eps});
  score(ops, normed, {0, outputs.count}, weights_.draft_head(),
        {.logits = step.logits,
         .peaks = step.peaks,
         .tokens = weights_.draft_token_table.view,
         .ids = step.next_ids});
}

}  // namespace slip::qwen3_5
