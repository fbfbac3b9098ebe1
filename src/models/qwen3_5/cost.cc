#include "models/qwen3_5/cost.h"

#include "models/common/tally.h"

namespace slip::qwen3_5 {
namespace {

// The tally of a Qwen3.5 step.
class Sum : public Tally {
 public:
  Sum(const CostOf& of, int64_t rows) : Tally(rows, of.context, of.kv), of_(of) {}
  using Tally::add;

  void add(const Moe& moe) {
    add(moe.router);
    add(moe.shared_gate);
    add(moe.shared);
    experts(moe.experts, of_.config.experts->top_k);
  }

  void add(const AttentionWeights& attention) {
    const AttentionConfig& c = of_.config.attention;
    add(attention, Heads{c.q_heads, c.kv_heads, c.head_dim});
  }

  // The state goes in and out once. Records of rows that may be rejected, about a hundredth of it
  // per row, are not counted.
  void add(const DeltaNet& delta) {
    for (const Weight* weight : {&delta.qkv, &delta.z, &delta.a, &delta.b, &delta.out})
      add(*weight);
    for (const View* vector : {&delta.conv, &delta.rate, &delta.dt_bias, &delta.norm_scale})
      add(*vector);
    const DeltaNetConfig& c = of_.config.delta_net;
    const auto values = double(c.value_heads * c.key_dim * c.value_dim);
    state(2 * values * sizeof(float));
    products(3 * values);
  }

  void add(const Layer& layer) {
    add(layer.input_scale);
    add(layer.post_scale);
    std::visit([&](const auto& mixer) { add(mixer); }, layer.mixer);
    std::visit([&](const auto& mlp) { add(mlp); }, layer.mlp);
  }

 private:
  const CostOf& of_;
};

}  // namespace

StepCost step_cost(const CostOf& of, int64_t rows) {
  Sum tally(of, rows);
  tally.look_up(of.weights.embedding);
  for (const Layer& layer : of.weights.layers) tally.add(layer);
  tally.add(of.weights.final_scale);
  tally.add(of.weights.head);
  return tally.cost();
}

StepCost draft_cost(const CostOf& of) {
  check(of.weights.mtp.has_value(), "draft_cost() of a model without an MTP layer");
  const Mtp& mtp = *of.weights.mtp;
  Sum tally(of, 1);
  tally.look_up(of.weights.embedding);
  for (const View* vector : {&mtp.embedding_scale, &mtp.hidden_scale, &mtp.final_scale})
    tally.add(*vector);
  tally.add(mtp.fc);
  tally.add(mtp.layer);
  tally.add(of.weights.draft_head());
  return tally.cost();
}

}  // namespace slip::qwen3_5
