// A Qwen3.5 model before it is loaded: from files, or of a published shape with random weights.
#pragma once

#include <filesystem>

#include "models/family.h"
#include "models/qwen3_5/config.h"
#include "weights/synthetic_source.h"

namespace slip::qwen3_5 {

// `config` is the folder's config.json.
Result<std::unique_ptr<FamilySource>> open_source(const JsonObject& config,
                                                  const std::filesystem::path& folder);

std::unique_ptr<FamilySource> synthetic_source(const Config& config, Release release);

}  // namespace slip::qwen3_5
