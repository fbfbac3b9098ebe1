// The assistant as a Drafter: layers that ask the model's own keys, at the last position, again and
// again.
#pragma once

#include "models/common/head.h"
#include "models/drafter.h"
#include "models/family.h"
#include "models/gemma4/gemma4.h"
#include "models/gemma4_assistant/files.h"
#include "models/gemma4_assistant/weights.h"

namespace slip::gemma4_assistant {

// Rows of one pass: one for each sequence that drafts.
inline constexpr int64_t kDraftRows = 64;

// What a draft writes.
struct DrafterActivations {
  DrafterActivations(const DrafterConfig& config, Memory* memory);

  uint64_t bytes = 0;
  gemma4::Activations layers;
  Tensor embedding;       // [rows, backbone]
  Tensor joined;          // [rows, 2 * backbone]
  Tensor cluster_scores;  // [rows, clusters]
  Tensor chosen;          // i32 [rows, chosen clusters]
  Tensor chosen_weights;  // [rows, chosen clusters]
  Tensor cluster_logits;  // [rows, chosen clusters, tokens of a cluster]
};

struct DrafterOptions {
  const DrafterFiles& files;
  std::vector<int32_t> draft_tokens;  // the shortlist; empty: all, or the head is clustered
  const WeightChoices& choices;
};

class Assistant : public Drafter {
 public:
  // `embedding` is that of the model it drafts for, which outlives it.
  static Result<std::unique_ptr<Assistant>> load(const DrafterOptions& options,
                                                 const gemma4::Embedding& embedding, Ops& ops,
                                                 ThreadPool& pool, const LoadProgress& progress);

  ~Assistant() override { ops_.forget_steps(this); }
  Assistant(const Assistant&) = delete;
  Assistant& operator=(const Assistant&) = delete;

  DrafterKeys keys() const override { return DrafterKeys::the_models; }
  int64_t max_rows() const override { return kDraftRows; }
  std::span<const int32_t> tokens() const override { return weights_.draft_tokens; }
  StepCost cost(int64_t context, const KvRecipe& kv) const override;
  void draft(std::span<const DraftStep> steps, Cache& cache) override;

  // Their names begin with "drafter.".
  std::vector<PlacedWeight> placed_weights() const;
  uint64_t weight_bytes() const { return storage_.size(); }

 private:
  Assistant(const DrafterOptions& options, const gemma4::Embedding& embedding, Ops& ops);
  void draft_once(const DraftStep& step, const gemma4::Pass& pass);
  void score_clusters(const View& normed, const OutputRows& outputs, const ClusteredHead& head,
                      const Scores& scores);

  DrafterConfig config_;
  gemma4::Embedding embedding_;
  Ops& ops_;
  WeightTable table_;
  DrafterWeights weights_;
  Buffer storage_;
  DrafterActivations activations_;
};

// The largest step, for backends to make room for.
StepLimits step_limits(const DrafterConfig& config);

// Adds to a model's plan what load() would take.
Status add_to_plan(const DrafterOptions& options, const Ops& ops, ModelPlan& plan);

}  // namespace slip::gemma4_assistant
