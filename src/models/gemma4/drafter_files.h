// A drafter before it is loaded.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "models/common/weight_origin.h"
#include "models/gemma4/drafter_config.h"

namespace slip::gemma4 {

struct DrafterFiles {
  DrafterConfig config;  // attached to its model
  WeightOrigin origin;
  std::optional<std::vector<int32_t>> token_order;  // of a clustered head

  std::unique_ptr<WeightSource> weight_source() const;
};

// Fails if there is none in the folder that could draft for `target`.
Result<DrafterFiles> open_drafter(const std::filesystem::path& folder, const Config& target);

DrafterFiles synthetic_drafter(const DrafterConfig& config);

// Where the drafter of the model in `folder` lies when nobody says: FOLDER/assistant,
// FOLDER-assistant, or in a Hugging Face cache the repository of the same name and "-assistant".
std::optional<std::filesystem::path> find_drafter(const std::filesystem::path& folder);

// The one in `asked_for`, or, if that is empty, the one that find_drafter() finds. A drafter that
// was found and does not fit is no reason not to run the model, and worth a note; one that was
// asked for is.
Result<std::optional<DrafterFiles>> choose_drafter(const std::filesystem::path& asked_for,
                                                   const std::filesystem::path& folder,
                                                   const Config& target,
                                                   std::vector<std::string>& notes);

}  // namespace slip::gemma4
