// From a folder (or the name of a published shape) to a model: the one place that knows all
// families.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "models/model.h"
#include "models/qwen3_5/config.h"
#include "models/qwen3_5/weights.h"
#include "models/weight_choices.h"

namespace slip {

struct ModelOptions {
  int64_t max_rows = 512;  // of one step
  int64_t context = 4096;  // positions of one sequence
  bool with_mtp = false;   // load the MTP layer if there is one
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

class ModelSource {
 public:
  // Reads config.json and the headers of all files.
  static Result<ModelSource> open(const std::filesystem::path& folder);

  // Random weights of a published shape ("qwen3.5-35b-a3b").
  static Result<ModelSource> synthetic(const std::string& shape);
  static std::vector<std::string> shape_names();

  // Whether the files hold a whole MTP layer.
  bool has_mtp() const { return has_mtp_; }
  int64_t max_context() const { return config_.max_context; }
  // What a person should know about the files.
  const std::vector<std::string>& notes() const { return notes_; }

  Result<ModelPlan> plan(const ModelOptions& options, const Ops& ops) const;
  Result<std::unique_ptr<Model>> load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                      const LoadProgress& progress) const;

 private:
  ModelSource() = default;
  void look_for_mtp();
  Result<qwen3_5::Wanted> wanted(const ModelOptions& options) const;
  std::unique_ptr<WeightSource> weight_source(bool with_mtp) const;

  std::unique_ptr<Checkpoint> checkpoint_;  // null for synthetic weights
  qwen3_5::Config config_;
  qwen3_5::Prefixes prefixes_;
  bool has_mtp_ = false;
  std::vector<std::string> notes_;
};

}  // namespace slip
