// From a folder (or the name of a published shape) to a model: the one place that knows all
// families.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/family.h"

namespace slip {

class ModelSource {
 public:
  // Reads config.json and the headers of all files. `drafter` is the folder of a drafter with files
  // of its own; empty: the one beside the model, if there is one.
  static Result<ModelSource> open(const std::filesystem::path& folder,
                                  const std::filesystem::path& drafter = {});

  // Whether config.json is of a family we know; `source` begins the refusal.
  static Status check_family(const JsonObject& config, const std::string& source);

  // Random weights of a published shape ("qwen3.5-35b-a3b"), in INT4 unless the name says
  // otherwise.
  static Result<ModelSource> synthetic(const std::string& shape);
  static std::vector<std::string> shape_names();
  static constexpr const char* kShapeFormats =
      "each in INT4, or with -fp8 or -bf16 behind its name in those";
  static bool is_shape(const std::string& shape);

  // Whether the files hold all that drafting needs.
  bool can_draft() const { return family_->can_draft(); }
  int64_t max_context() const { return family_->max_context(); }
  // What a person should know about the files.
  std::vector<std::string> notes() const;
  // Those of them that whoever runs the model should see: it does less than its files announce, or
  // may do so.
  const std::vector<std::string>& warnings() const { return family_->warnings(); }

  Result<ModelPlan> plan(const ModelOptions& options, const Ops& ops) const {
    return family_->plan(options, ops);
  }
  Result<std::unique_ptr<Model>> load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                      const LoadProgress& progress) const {
    return family_->load(options, ops, pool, progress);
  }

 private:
  explicit ModelSource(std::unique_ptr<FamilySource> family) : family_(std::move(family)) {}

  std::unique_ptr<FamilySource> family_;
};

}  // namespace slip
