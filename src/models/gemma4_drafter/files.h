// A drafter before it is loaded.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "checkpoint/checkpoint.h"
#include "models/gemma4_drafter/config.h"
#include "weights/weight_source.h"

namespace slip::gemma4 {

struct DrafterFiles {
  DrafterConfig config;                             // attached to its model
  std::unique_ptr<Checkpoint> checkpoint;           // null for synthetic weights
  std::optional<std::vector<int32_t>> token_order;  // of a clustered head

  std::unique_ptr<WeightSource> weight_source() const;
};

// Fails if there is none in the folder that could draft for `target`.
Result<DrafterFiles> open_drafter(const std::filesystem::path& folder, const Config& target);

DrafterFiles synthetic_drafter(const DrafterConfig& config);

// Where the drafter of the model in `folder` lies when nobody says: FOLDER/assistant,
// FOLDER-assistant, or in a Hugging Face cache the repository of the same name and "-assistant".
std::optional<std::filesystem::path> find_drafter(const std::filesystem::path& folder);

}  // namespace slip::gemma4
