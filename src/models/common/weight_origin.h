// Where a model's weights come from: its files, or random numbers where there are none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "models/family.h"
#include "weights/synthetic_source.h"

namespace slip {

class WeightOrigin {
 public:
  explicit WeightOrigin(SyntheticSource::FormatRule formats) : formats_(std::move(formats)) {}
  explicit WeightOrigin(Checkpoint files)
      : files_(std::make_shared<const Checkpoint>(std::move(files))) {}

  // Null for random numbers.
  const std::shared_ptr<const Checkpoint>& files() const { return files_; }
  std::vector<std::string> notes() const;

  // Tensors under an ignored prefix are not "extra".
  std::unique_ptr<WeightSource> open(std::vector<std::string> ignored_prefixes) const;

  // The shortlist for drafting, `count` tokens or 0: all. Empty: the whole vocabulary.
  Result<std::vector<int32_t>> draft_tokens(int64_t vocabulary, int64_t count) const;

 private:
  std::shared_ptr<const Checkpoint> files_;
  SyntheticSource::FormatRule formats_;  // without files
};

// The weights of a plan, and their bytes.
Result<ModelPlan> plan_weights(WeightTable& table, WeightSource& source, const Ops& ops);

}  // namespace slip
