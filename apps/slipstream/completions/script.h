// Completion scripts for shells, from the same tables that parse the flags.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace slip {

struct VerbToComplete {
  std::string name;  // "run", "eval logits"
  std::string summary;
  std::vector<std::string> flags;  // with their dashes
};

// `shell` is bash, zsh or fish.
Result<std::string> completion_script(const std::string& shell,
                                      const std::vector<VerbToComplete>& verbs);

}  // namespace slip
