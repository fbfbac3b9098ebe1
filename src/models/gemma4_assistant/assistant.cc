#include "models/gemma4_assistant/assistant.h"

#include "models/common/run_pass.h"
#include "models/gemma4/cost.h"

namespace slip::gemma4_assistant {
namespace {

// The model has weights of the same names.
std::vector<PlacedWeight> marked(std::vector<PlacedWeight> weights) {
  for (PlacedWeight& weight : weights) {
    weight.name.insert(0, "drafter.");
    weight.drafts = true;
  }
  return weights;
}

DrafterWeights weights_to_declare(const DrafterOptions& options) {
  DrafterWeights weights;
  weights.draft_tokens = options.draft_tokens;
  if (options.files.token_order) weights.clustered.emplace().order = *options.files.token_order;
  return weights;
}

}  // namespace

DrafterActivations::DrafterActivations(const DrafterConfig& config, Memory* memory)
    : layers(config.text, kDraftRows, memory) {
  BufferMaker make(memory);
  embedding = make.f32({kDraftRows, config.backbone});
  joined = make.f32({kDraftRows, 2 * config.backbone});
  if (config.clusters > 0) {
    const int64_t size = config.text.vocabulary / config.clusters;
    cluster_scores = make.f32({kDraftRows, config.clusters});
    chosen = make.i32({kDraftRows, config.chosen_clusters});
    chosen_weights = make.f32({kDraftRows, config.chosen_clusters});
    cluster_logits = make.f32({kDraftRows, config.chosen_clusters, size});
  }
  bytes = layers.bytes + make.bytes();
}

Assistant::Assistant(const DrafterOptions& options, const gemma4::Embedding& embedding, Ops& ops)
    : config_(options.files.config),
      embedding_(embedding),
      ops_(ops),
      weights_(weights_to_declare(options)),
      activations_(config_, &ops.memory()) {}

Result<std::unique_ptr<Assistant>> Assistant::load(const DrafterOptions& options,
                                                   const gemma4::Embedding& embedding, Ops& ops,
                                                   ThreadPool& pool, const LoadProgress& progress) {
  std::unique_ptr<Assistant> assistant(new Assistant(options, embedding, ops));
  declare_drafter(assistant->config_, options.choices, assistant->table_, assistant->weights_);
  SLIP_TRY(assistant->storage_,
           assistant->table_.load(*options.files.weight_source(), ops, pool, progress));
  finish_drafter(assistant->config_, ops.memory(), assistant->weights_);
  return assistant;
}

void Assistant::draft(std::span<const DraftStep> steps, Cache& cache) {
  run_passes({ops_, this, kDraftRows}, steps, [&](const DraftStep& step) {
    const gemma4::Pass pass{config_.text,     ops_, cache, activations_.layers, step.spans, 0,
                            step.ids.shape[0]};
    // All drafts of a sequence are made at the same position, its last.
    if (&step == &steps.front()) prepare_rotation(pass);
    draft_once(step, pass);
  });
}

void Assistant::draft_once(const DraftStep& step, const gemma4::Pass& pass) {
  gemma4::Activations& act = activations_.layers;
  const View embedded = pass.of(activations_.embedding), joined = pass.of(activations_.joined);
  const View residual = pass.of(act.residual), normed = pass.of(act.normed);
  const OutputRows outputs = output_rows(step.outputs);

  ops_.embed(
      {.ids = step.ids, .table = embedding_.table, .out = embedded, .factor = embedding_.factor});
  ops_.join({.a = embedded, .b = step.hidden, .out = joined});
  ops_.linear({.x = joined, .weight = weights_.before, .out = residual});
  run_layers(weights_.layers, 0, weights_.layers.size(), pass);
  ops_.rms_norm(
      {.x = residual, .scale = weights_.final_scale, .out = normed, .eps = config_.text.eps});
  if (!step.next_hidden.empty())
    ops_.linear({.x = normed.slice(outputs.first, outputs.count),
                 .weight = weights_.after,
                 .out = step.next_hidden});
  const Scores scores{.logits = step.logits,
                      .peaks = step.peaks,
                      .tokens = weights_.draft_token_table.view,
                      .ids = step.next_ids};
  if (weights_.clustered) {
    score_clusters(normed, outputs, *weights_.clustered, scores);
  } else {
    score(ops_, normed, outputs, weights_.head, scores);
  }
}

void Assistant::score_clusters(const View& normed, const OutputRows& outputs,
                               const ClusteredHead& head, const Scores& scores) {
  if (outputs.count == 0) return;
  const View x = normed.slice(outputs.first, outputs.count);
  const auto of = [&](const Tensor& tensor) { return tensor.view.first(outputs.count); };
  const View fits = of(activations_.cluster_scores), chosen = of(activations_.chosen);
  ops_.linear({.x = x, .weight = head.centroids, .out = fits});
  ops_.route({.logits = fits, .ids = chosen, .weights = of(activations_.chosen_weights)});
  ops_.cluster_head({.x = x,
                     .chosen = chosen,
                     .clusters = head.clusters,
                     .tokens = head.tokens.view,
                     .scratch = of(activations_.cluster_logits),
                     .out = scores.logits});
  find_peaks(ops_, scores);
}

StepCost Assistant::cost(int64_t context, const KvRecipe& kv) const {
  Tally tally(1, context, kv);
  tally.look_up(embedding_.table);
  tally.add(weights_.before);
  add_layers(config_.text, weights_.layers, tally);
  tally.add(weights_.final_scale);
  tally.add(weights_.after);
  if (!weights_.clustered) {
    tally.add(weights_.head);
    return tally.cost();
  }
  tally.add(weights_.clustered->centroids);
  const double asked = double(config_.chosen_clusters) / double(config_.clusters);
  for (const Weight& cluster : weights_.clustered->clusters) tally.add(cluster, asked, asked);
  return tally.cost();
}

std::vector<PlacedWeight> Assistant::placed_weights() const { return marked(table_.placed()); }

StepLimits step_limits(const DrafterConfig& config) {
  StepLimits limits;
  limits.rows = kDraftRows;
  limits.widest_input = 2 * config.backbone;
  cover_layers(config.text, limits);
  return limits;
}

Status add_to_plan(const DrafterOptions& options, const Ops& ops, ModelPlan& plan) {
  WeightTable table;
  DrafterWeights weights = weights_to_declare(options);
  declare_drafter(options.files.config, options.choices, table, weights);
  SLIP_TRY(const uint64_t bytes, table.plan(*options.files.weight_source(), ops));
  plan.weight_bytes += bytes;
  for (PlacedWeight& weight : marked(table.placed())) plan.weights.push_back(std::move(weight));
  plan.activation_bytes += DrafterActivations(options.files.config, nullptr).bytes;
  return {};
}

}  // namespace slip::gemma4_assistant
