#include "models/gemma4_assistant/weights.h"

#include <cstring>

#include "models/common/head.h"

namespace slip::gemma4_assistant {

void declare_drafter(const DrafterConfig& config, const WeightChoices& choices, WeightTable& table,
                     DrafterWeights& weights) {
  const gemma4::Config& text = config.text;
  const WeightPart model{table, "model.", choices.drafter};
  const WeightPart root{table, "", choices.drafter};
  root.matrix("pre_projection", text.hidden, 2 * config.backbone, &weights.before);
  root.matrix("post_projection", config.backbone, text.hidden, &weights.after);
  declare_layers(model, text, weights.layers);
  model.vector("norm.weight", {text.hidden}, &weights.final_scale);
  MadeLinear head{.name = "model.embed_tokens",
                  .module = "model.embed_tokens",
                  .out = text.vocabulary,
                  .in = text.hidden,
                  .recoding = {.format = choices.drafter, .rows = weights.draft_tokens}};
  if (!weights.clustered) return table.add_linear(head, &weights.head);
  ClusteredHead& clustered = *weights.clustered;
  root.matrix("masked_embedding.centroids", config.clusters, text.hidden, &clustered.centroids);
  const auto size = size_t(text.vocabulary / config.clusters);
  clustered.clusters.resize(size_t(config.clusters));
  for (size_t i = 0; i < clustered.clusters.size(); ++i) {
    head.name = cat("model.embed_tokens.cluster.", i);
    head.recoding.rows = std::span(clustered.order).subspan(i * size, size);
    table.add_linear(head, &clustered.clusters[i]);
  }
}

Result<std::optional<std::vector<int32_t>>> read_token_order(const Checkpoint& checkpoint,
                                                             const DrafterConfig& config) {
  // Some files announce clusters and have none: the tensors decide.
  const StoredTensor* tensor = checkpoint.find("masked_embedding.token_ordering");
  if (!tensor) return std::optional<std::vector<int32_t>>{};
  const int64_t vocabulary = config.text.vocabulary;
  const auto refuse = [&](const std::string& what) {
    return error(tensor->path().string(), ": tensor ", tensor->name, ": ", what);
  };
  if (tensor->type != StoredType::i64 || tensor->shape != std::vector<int64_t>{vocabulary})
    return refuse(cat("expected I64 of shape [", vocabulary, "], the file has ",
                      stored_type_name(tensor->type), " of ", describe_shape(tensor->shape)));
  if (config.clusters == 0 || vocabulary % config.clusters != 0 || config.chosen_clusters == 0 ||
      config.chosen_clusters > config.clusters)
    return refuse(cat("config.json has num_centroids ", config.clusters,
                      ", centroid_intermediate_top_k ", config.chosen_clusters,
                      "; clusters must divide the vocabulary of ", vocabulary));
  std::vector<int32_t> order;
  std::vector<bool> seen(size_t(vocabulary), false);
  for (size_t i = 0; i < size_t(vocabulary); ++i) {
    int64_t token = 0;
    std::memcpy(&token, tensor->data.data() + i * sizeof(token), sizeof(token));
    if (token < 0 || token >= vocabulary || seen[size_t(token)])
      return refuse(cat("expected every token once, found ", token, " at ", i));
    seen[size_t(token)] = true;
    order.push_back(int32_t(token));
  }
  return std::optional(std::move(order));
}

void finish_drafter(const DrafterConfig& config, Memory& memory, DrafterWeights& weights) {
  finish_layers(memory, weights.layers);
  weights.draft_token_table = token_table(memory, weights.draft_tokens);
  if (!weights.clustered) return;
  ClusteredHead& clustered = *weights.clustered;
  clustered.tokens = token_table(memory, clustered.order);
  clustered.tokens.view =
      clustered.tokens.view.reshaped({config.clusters, config.text.vocabulary / config.clusters});
}

}  // namespace slip::gemma4_assistant
