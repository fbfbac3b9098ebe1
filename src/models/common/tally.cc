#include "models/common/tally.h"

#include <algorithm>
#include <cmath>

namespace slip {
namespace {

bool is_integer(WeightFormat format) {
  return format == WeightFormat::int4_group || format == WeightFormat::int8_row;
}

size_t bytes_of(const View& view) { return view.empty() ? 0 : view.bytes(); }

}  // namespace

void Tally::add(const Weight& weight, double read, double used) {
  bytes_ += read * double(bytes_of(weight.values) + bytes_of(weight.scales));
  const double products = used * rows_ * double(weight.info.out) * double(weight.info.in);
  (is_integer(weight.info.format) ? integers_ : floats_) += products;
}

void Tally::add(const View& vector) {
  if (vector.empty()) return;
  bytes_ += double(vector.bytes());
  floats_ += rows_ * double(vector.count());
}

void Tally::add(const GatedMlp& mlp, double read, double used) {
  add(mlp.gate, read, used);
  add(mlp.up, read, used);
  add(mlp.down, read, used);
}

void Tally::experts(std::span<const GatedMlp> experts, int64_t top_k) {
  const double chosen = double(top_k) / double(experts.size());
  const double read = 1 - std::pow(1 - chosen, rows_);
  for (const GatedMlp& expert : experts) add(expert, read, chosen);
}

void Tally::add(const AttentionWeights& attention, const Heads& heads) {
  for (const Weight* weight : {&attention.q, &attention.k, &attention.v, &attention.o})
    add(*weight);
  add(attention.q_scale);
  add(attention.k_scale);
  const auto seen = double(heads.window > 0 ? std::min(context_, heads.window) : context_);
  const KvRecipe kv = heads.window > 0 ? window_recipe(kv_) : kv_;
  cache_ += seen * double(heads.kv_heads) * double(bytes_per_position(kv, heads.head_dim));
  floats_ += rows_ * 2 * seen * double(heads.q_heads * heads.head_dim);
}

StepCost Tally::cost() const {
  return {.weight_bytes = uint64_t(bytes_),
          .cache_bytes = uint64_t(cache_),
          .integer_products = uint64_t(integers_),
          .float_products = uint64_t(floats_)};
}

}  // namespace slip
