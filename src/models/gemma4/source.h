// A Gemma 4 model and its drafter before they are loaded: from files, or of a published shape with
// random weights.
#pragma once

#include <filesystem>

#include "models/family.h"
#include "models/gemma4/shapes.h"

namespace slip::gemma4 {

// `config` is the folder's config.json. The drafter is the one in `drafter`, or, if that is empty,
// the one that find_drafter() finds.
Result<std::unique_ptr<FamilySource>> open_source(const JsonObject& config,
                                                  const std::filesystem::path& folder,
                                                  const std::filesystem::path& drafter);

std::unique_ptr<FamilySource> synthetic_source(const Shapes& shapes);

}  // namespace slip::gemma4
