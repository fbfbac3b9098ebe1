// Drafters of Gemma 4 ("assistants"), as config.json describes them.
#pragma once

#include "models/gemma4/config.h"

namespace slip::gemma4_assistant {

// A model that drafts for another: layers without keys of their own, which read the other's.
struct DrafterConfig {
  gemma4::Config text;   // the layers; vocabulary rows are its head alone
  int64_t backbone = 0;  // hidden size of the model it drafts for
  int64_t clusters = 0;  // of the head, 0: none
  int64_t chosen_clusters = 0;
};

// Whether the whole config.json is that of a drafter.
bool is_drafter(const JsonObject& json);

Result<DrafterConfig> read_drafter_config(const JsonObject& json, const std::string& source);

// Makes the drafter's layers read the keys of `target`, or says why these two do not fit.
Status attach(DrafterConfig& drafter, const gemma4::Config& target);

}  // namespace slip::gemma4_assistant
