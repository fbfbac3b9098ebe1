// Everything that `run` was told.
#pragma once

#include <optional>
#include <string>

#include "slipstream/common/model_flags.h"
#include "slipstream/common/speculate_flags.h"
#include "slipstream/run/printer.h"
#include "slipstream/run/sampling.h"

namespace slip {

struct RunOptions {
  ModelFlags model;
  SamplingFlags sampling;
  SpeculateFlags speculation;
  std::string first, second;  // the words without a flag: MODEL, PROMPT, or both
  std::string prompt;
  std::string ids;  // a file
  std::string system;
  std::string think;  // "", "on" or "off"
  bool raw = false;
  bool hide_thinking = false, show_thinking = false;
  bool json = false;
  bool stats = false, quiet = false;
  bool dry_run = false;

  void add_to(Flags& flags);

  // Sorts the words without a flag into model and prompt, and refuses what makes no sense.
  Status settle();

  // What the template gets as enable_thinking; without it the template decides.
  std::optional<bool> thinking() const {
    return think.empty() ? std::nullopt : std::optional(think == "on");
  }
};

// Whether a lone word after `run` means a model: something that exists, minnow, a path, or
// org/name. Everything else is a prompt for minnow.
bool names_a_model(const std::string& word);

// How thoughts are shown: dimmed to a person, not at all to a pipe, unless told otherwise.
PrintStyle print_style(const RunOptions& options, const Terminal& terminal);

}  // namespace slip
