// What bench measured, and how much of what the machine can do that is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quant/kv_recipe.h"
#include "slipstream/bench/projection.h"
#include "slipstream/common/roofs.h"

namespace slip {

struct BenchRow {
  std::string test;  // "pp512", "tg128", "tg128x4" of four users
  int64_t depth = 0;
  double tokens_per_second = 0;  // median of the runs
  double spread = 0;             // largest minus smallest, relative to the median
  int64_t tokens_per_step = 1;
  // Of a decode step; prompts share their weights, so they have none.
  uint64_t bytes_per_step = 0;
  uint64_t int8_products_per_step = 0;

  bool decodes() const { return bytes_per_step > 0; }
  double seconds_per_step() const { return double(tokens_per_step) / tokens_per_second; }
  double bytes_per_second() const { return double(bytes_per_step) / seconds_per_step(); }
  double int8_products_per_second() const {
    return double(int8_products_per_step) / seconds_per_step();
  }
};

struct BenchResult {
  std::string model;
  bool synthetic = false;
  KvRecipe kv{};
  uint64_t weight_bytes = 0;
  double load_seconds = 0;
  std::vector<BenchRow> rows{};
  Roofs roofs{};
  std::optional<ProjectedMachine> there{};  // the machine to project to

  double share_of_bandwidth(const BenchRow& row) const {
    return row.bytes_per_second() / roofs.read_bytes_per_second;
  }
  double share_of_int8_rate(const BenchRow& row) const {
    return row.int8_products_per_second() / roofs.int8_products_per_second;
  }
  // Tokens per second on that machine; only for rows that decode.
  double projected_rate(const BenchRow& row) const {
    return double(row.tokens_per_step) / projected_seconds(row.seconds_per_step(),
                                                           double(row.bytes_per_step),
                                                           roofs.read_bytes_per_second, *there);
  }
};

}  // namespace slip
