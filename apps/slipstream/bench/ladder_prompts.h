// What the ladder decodes: the five tests of the published recipe, or smaller ones of the same
// kinds for models that are too small for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace slip {

struct LadderPrompt {
  std::string name;
  std::string prompt;
  int64_t max_tokens = 0;
};

std::vector<LadderPrompt> recipe_prompts();

// Of the kinds that minnow was trained on.
std::vector<LadderPrompt> minnow_prompts();

// [{"name": ..., "prompt": ..., "max_tokens": ...}, ...]; `source` begins the error messages.
Result<std::vector<LadderPrompt>> parse_ladder_prompts(const std::string& text,
                                                       const std::string& source);

}  // namespace slip
