// A drafter before it is loaded.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "models/common/weight_origin.h"
#include "models/gemma4_assistant/config.h"

namespace slip::gemma4_assistant {

struct DrafterFiles {
  DrafterConfig config;  // attached to its model
  WeightOrigin origin;
  std::optional<std::vector<int32_t>> token_order;  // of a clustered head

  std::unique_ptr<WeightSource> weight_source() const;
};

// Fails if there is none in the folder that could draft for `target`.
Result<DrafterFiles> open_drafter(const std::filesystem::path& folder,
                                  const gemma4::Config& target);

DrafterFiles synthetic_drafter(const DrafterConfig& config);

// Where the drafter of the model in `folder` lies when nobody says: FOLDER/assistant,
// FOLDER-assistant, or in a Hugging Face cache the repository of the same name and "-assistant".
std::optional<std::filesystem::path> find_drafter(const std::filesystem::path& folder);

}  // namespace slip::gemma4_assistant
