// Adds up what a step moves and multiplies. Weights are read once, whatever the number of rows;
// every row multiplies.
#pragma once

#include <span>

#include "models/common/attention_weights.h"
#include "models/model.h"

namespace slip {

class Tally {
 public:
  Tally(int64_t rows, int64_t context, const KvRecipe& kv)
      : rows_(double(rows)), context_(context), kv_(kv) {}

  // `read` is the share of the bytes that the step reads, `used` that of the products per row.
  void add(const Weight& weight, double read = 1, double used = 1);
  void add(const View& vector);
  void add(const GatedMlp& mlp, double read = 1, double used = 1);

  // One row of the table for each token.
  void look_up(const Weight& table) { add(table, rows_ / double(table.info.out), 0); }

  // If rows choose independently, an expert is left alone by all of them with some probability;
  // rows that follow each other agree more often, so the truth is a little less.
  void experts(std::span<const GatedMlp> experts, int64_t top_k);

  // Weights, and keys and values of the positions that a row sees: all before it, or those in its
  // window.
  struct Heads {
    int64_t q_heads, kv_heads, head_dim;
    int64_t window = 0;
  };
  void add(const AttentionWeights& attention, const Heads& heads);

  void state(double bytes) { cache_ += bytes; }
  void products(double per_row) { floats_ += rows_ * per_row; }

  StepCost cost() const;

 private:
  double rows_;
  int64_t context_;
  KvRecipe kv_;
  double bytes_ = 0, cache_ = 0, integers_ = 0, floats_ = 0;
};

}  // namespace slip
