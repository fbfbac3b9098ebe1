// How the files of a text model spell the beginnings of names, and what hangs on it.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "models/common/text_config.h"
#include "weights/weight_table.h"

namespace slip {

struct TextPrefixes {
  std::string text = "model.language_model.";
  std::string head = "lm_head";
};

// Whether the files hold any tensor under a prefix.
bool has_tensors(const Checkpoint& checkpoint, const std::string& prefix);

// Fails, naming the family, if there is no embedding under any of the prefixes in use.
Result<TextPrefixes> find_text_prefixes(const Checkpoint& checkpoint, const char* family);

// Warns of a head in the files where config.json says that the embedding is the head, and the two
// are not the same: it is not used, and what the model says may be nonsense.
void warn_of_unused_head(const Checkpoint& checkpoint, const TextConfig& config,
                         const TextPrefixes& prefixes, std::vector<std::string>& warnings);

// The head. A tied one is the embedding, which is then read once more.
MadeLinear made_head(const TextConfig& config, const TextPrefixes& prefixes, bool int8);

}  // namespace slip
