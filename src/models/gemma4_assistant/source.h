// A Gemma 4 model with its drafter before they are loaded.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "models/gemma4/source.h"

namespace slip::gemma4_assistant {

// `model` with the drafter in the folder `asked_for`, or, if that is empty, with the one that
// find_drafter() finds for the model in `folder`; as it is if there is none.
Result<std::unique_ptr<FamilySource>> with_drafter(std::unique_ptr<gemma4::Source> model,
                                                   const std::filesystem::path& folder,
                                                   const std::filesystem::path& asked_for);

// The model of a published shape, with the drafter that was published for it.
std::unique_ptr<FamilySource> synthetic_source(const std::string& name,
                                               const gemma4::Config& config, Release release);

}  // namespace slip::gemma4_assistant
