// The drafter: layers that ask the model's own keys, at the last position, again and again. It
// drafts; it never decides.
#pragma once

#include "models/common/head.h"
#include "models/family.h"
#include "models/gemma4/forward.h"
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

class Drafter {
 public:
  static Result<std::unique_ptr<Drafter>> load(const DrafterOptions& options, Ops& ops,
                                               ThreadPool& pool, const LoadProgress& progress);

  ~Drafter() { ops_.forget_steps(this); }
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;

  // `embedding` and `cache` are those of the model it drafts for.
  void draft(std::span<const DraftStep> steps, const gemma4::Embedding& embedding,
             const Cache& cache);

  StepCost cost(const Weight& embedding, int64_t context, const KvRecipe& kv) const;
  std::span<const int32_t> draft_tokens() const { return weights_.draft_tokens; }
  // Their names begin with "drafter.".
  std::vector<PlacedWeight> placed_weights() const;
  uint64_t weight_bytes() const { return storage_.size(); }
  uint64_t activation_bytes() const { return activations_.bytes; }

 private:
  Drafter(const DrafterOptions& options, Ops& ops);
  void score_clusters(const View& normed, const OutputRows& outputs, const ClusteredHead& head,
                      const Scores& scores);

  DrafterConfig config_;
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
