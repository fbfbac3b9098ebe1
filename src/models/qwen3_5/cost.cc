#include "models/qwen3_5/cost.h"

#include <cmath>

namespace slip::qwen3_5 {
namespace {

bool is_integer(WeightFormat format) {
  return format == WeightFormat::int4_group || format == WeightFormat::int8_row;
}

size_t bytes_of(const View& view) { return view.empty() ? 0 : view.bytes(); }

// Adds up a step. Weights are read once, whatever the number of rows; every row multiplies.
class Tally {
 public:
  Tally(const CostOf& of, int64_t rows) : of_(of), rows_(double(rows)) {}

  // `read` is the share of the bytes that the step reads, `used` that of the products per row.
  void add(const Weight& weight, double read = 1, double used = 1) {
    bytes_ += read * double(bytes_of(weight.values) + bytes_of(weight.scales));
    const double products = used * rows_ * double(weight.info.out) * double(weight.info.in);
    (is_integer(weight.info.format) ? integers_ : floats_) += products;
  }
  void add(const View& vector) {
    bytes_ += double(bytes_of(vector));
    floats_ += rows_ * double(vector.count());
  }
  void add(const GatedMlp& mlp, double read = 1, double used = 1) {
    add(mlp.gate, read, used);
    add(mlp.up, read, used);
    add(mlp.down, read, used);
  }

  // One row of the table for each token.
  void look_up(const Weight& table) { add(table, rows_ / double(table.info.out), 0); }

  void add(const Moe& moe) {
    add(moe.router);
    add(moe.shared_gate);
    add(moe.shared);
    // If rows choose independently, an expert is left alone by all of them with this probability;
    // rows that follow each other agree more often, so the truth is a little less.
    const double chosen = double(of_.config.experts->top_k) / double(of_.config.experts->experts);
    const double read = 1 - std::pow(1 - chosen, rows_);
    for (const GatedMlp& expert : moe.experts) add(expert, read, chosen);
  }

  void add(const Attention& attention) {
    for (const Weight* weight : {&attention.q, &attention.k, &attention.v, &attention.o})
      add(*weight);
    add(attention.q_scale);
    add(attention.k_scale);
    const AttentionConfig& c = of_.config.attention;
    const auto context = double(of_.context);
    cache_ += context * double(c.kv_heads) * double(bytes_per_position(of_.kv, c.head_dim));
    floats_ += rows_ * 2 * context * double(c.q_heads * c.head_dim);
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
    cache_ += 2 * values * sizeof(float);
    floats_ += rows_ * 3 * values;
  }

  void add(const Layer& layer) {
    add(layer.input_scale);
    add(layer.post_scale);
    std::visit([&](const auto& mixer) { add(mixer); }, layer.mixer);
    std::visit([&](const auto& mlp) { add(mlp); }, layer.mlp);
  }

  StepCost cost() const {
    return {.weight_bytes = uint64_t(bytes_),
            .cache_bytes = uint64_t(cache_),
            .integer_products = uint64_t(integers_),
            .float_products = uint64_t(floats_)};
  }

 private:
  const CostOf& of_;
  double rows_;
  double bytes_ = 0, cache_ = 0, integers_ = 0, floats_ = 0;
};

}  // namespace

StepCost step_cost(const CostOf& of, int64_t rows) {
  Tally tally(of, rows);
  tally.look_up(of.weights.embedding);
  for (const Layer& layer : of.weights.layers) tally.add(layer);
  tally.add(of.weights.final_scale);
  tally.add(of.weights.head);
  return tally.cost();
}

StepCost draft_cost(const CostOf& of) {
  check(of.weights.mtp.has_value(), "draft_cost() of a model without an MTP layer");
  const Mtp& mtp = *of.weights.mtp;
  Tally tally(of, 1);
  tally.look_up(of.weights.embedding);
  for (const View* vector : {&mtp.embedding_scale, &mtp.hidden_scale, &mtp.final_scale})
    tally.add(*vector);
  tally.add(mtp.fc);
  tally.add(mtp.layer);
  tally.add(of.weights.draft_head());
  return tally.cost();
}

}  // namespace slip::qwen3_5
