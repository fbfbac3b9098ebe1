// What the models of all families keep beside their weights.
#pragma once

#include <string>
#include <vector>

#include "models/common/run_pass.h"
#include "models/model.h"

namespace slip {

class TextModel : public Model {
 public:
  TextModel(const TextModel&) = delete;
  TextModel& operator=(const TextModel&) = delete;

  const ModelInfo& info() const override { return info_; }
  const std::vector<CacheSpec>& cache_specs() const override { return cache_specs_; }
  const std::vector<PlacedWeight>& placed_weights() const override { return placed_; }
  uint64_t weight_bytes() const override { return storage_.size(); }

 protected:
  TextModel(ModelInfo info, std::vector<CacheSpec> cache_specs, Ops& ops)
      : info_(std::move(info)), cache_specs_(std::move(cache_specs)), ops_(ops) {}

  // Loads what the table was told to.
  Status load_weights(WeightTable& table, WeightSource& source, ThreadPool& pool,
                      const LoadProgress& progress);

  PassOwner pass_owner() const { return {ops_, this, max_rows()}; }

  ModelInfo info_;
  std::vector<CacheSpec> cache_specs_;
  Ops& ops_;
  Buffer storage_;
  std::vector<PlacedWeight> placed_;
};

}  // namespace slip
