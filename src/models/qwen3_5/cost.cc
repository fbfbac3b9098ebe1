// What a step must move and multiply: which bounds tokens per second.
#include "models/common/tally.h"
#include "models/qwen3_5/qwen3_5.h"

namespace slip::qwen3_5 {
namespace {

void add(const Config& config, const AttentionWeights& attention, Tally& tally) {
  const AttentionConfig& c = config.attention;
  tally.add(attention, {c.q_heads, c.kv_heads, c.head_dim});
}

// The state goes in and out once. Records of rows that may be rejected, about a hundredth of it
// per row, are not counted.
void add(const Config& config, const DeltaNet& delta, Tally& tally) {
  for (const Weight* weight : {&delta.qkv, &delta.z, &delta.a, &delta.b, &delta.out})
    tally.add(*weight);
  for (const View* vector : {&delta.conv, &delta.rate, &delta.dt_bias, &delta.norm_scale})
    tally.add(*vector);
  const DeltaNetConfig& c = config.delta_net;
  const auto values = double(c.value_heads * c.key_dim * c.value_dim);
  tally.state(2 * values * sizeof(float));
  tally.products(3 * values);
}

void add(const Config&, const GatedMlp& mlp, Tally& tally) { tally.add(mlp); }

void add(const Config& config, const Moe& moe, Tally& tally) {
  tally.add(moe.router);
  tally.add(moe.shared_gate);
  tally.add(moe.shared);
  tally.experts(moe.experts, config.experts->top_k);
}

void add(const Config& config, const Layer& layer, Tally& tally) {
  tally.add(layer.input_scale);
  tally.add(layer.post_scale);
  std::visit([&](const auto& mixer) { add(config, mixer, tally); }, layer.mixer);
  std::visit([&](const auto& mlp) { add(config, mlp, tally); }, layer.mlp);
}

}  // namespace

StepCost Qwen35::step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const {
  Tally tally(rows, context, kv);
  tally.look_up(weights_.embedding);
  for (const Layer& layer : weights_.layers) add(config_, layer, tally);
  tally.add(weights_.final_scale);
  tally.add(weights_.head);
  return tally.cost();
}

StepCost MtpDrafter::cost(int64_t context, const KvRecipe& kv) const {
  const Mtp& mtp = *weights_.mtp;
  Tally tally(1, context, kv);
  tally.look_up(weights_.embedding);
  for (const View* vector : {&mtp.embedding_scale, &mtp.hidden_scale, &mtp.final_scale})
    tally.add(*vector);
  tally.add(mtp.fc);
  add(config_, mtp.layer, tally);
  tally.add(weights_.draft_head());
  return tally.cost();
}

}  // namespace slip::qwen3_5
