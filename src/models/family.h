// What can be known of a model before it is loaded. Each family implements it; model_source.h
// chooses the family.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/weight_choices.h"

namespace slip {

struct ModelOptions {
  int64_t max_rows = 512;     // of one step
  int64_t context = 4096;     // positions of one sequence
  bool with_drafter = false;  // load the drafter, if there is one
  WeightChoices weights{};
};

// What loading would do, without doing it.
struct ModelPlan {
  ModelInfo info;
  std::vector<CacheSpec> cache_specs;
  std::vector<PlacedWeight> weights;
  uint64_t weight_bytes = 0;
  uint64_t activation_bytes = 0;
};

class FamilySource {
 public:
  virtual ~FamilySource() = default;

  virtual bool can_draft() const = 0;
  virtual int64_t max_context() const = 0;
  // How the files were read, where that was not plain.
  virtual std::vector<std::string> notes() const = 0;
  // Where the model does less than its files announce, or may do so.
  virtual const std::vector<std::string>& warnings() const = 0;

  virtual Result<ModelPlan> plan(const ModelOptions& options, const Ops& ops) const = 0;
  virtual Result<std::unique_ptr<Model>> load(const ModelOptions& options, Ops& ops,
                                              ThreadPool& pool,
                                              const LoadProgress& progress) const = 0;
};

}  // namespace slip
