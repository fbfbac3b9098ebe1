#include "models/common/prefixes.h"

#include <algorithm>

#include "models/common/weight_part.h"

namespace slip {

bool has_tensors(const Checkpoint& checkpoint, const std::string& prefix) {
  return std::ranges::any_of(checkpoint.tensors(), [&](const StoredTensor& tensor) {
    return tensor.name.starts_with(prefix);
  });
}

Result<TextPrefixes> find_text_prefixes(const Checkpoint& checkpoint, const char* family) {
  TextPrefixes prefixes;
  for (const char* head : {"language_model.lm_head", "model.lm_head"})
    if (checkpoint.find(cat(head, ".weight"))) prefixes.head = head;
  for (const char* text : {"model.language_model.", "language_model.model.", "model."}) {
    if (!checkpoint.find(cat(text, "embed_tokens.weight"))) continue;
    prefixes.text = text;
    return prefixes;
  }
  return error(checkpoint.folder().string(), ": no tensor embed_tokens.weight under any of ",
               "model.language_model. language_model.model. model.; is this a ", family,
               " text model?");
}

MadeLinear made_head(const TextConfig& config, const TextPrefixes& prefixes, bool int8) {
  return {.name = prefixes.head,
          .module = config.tied_head ? prefixes.text + "embed_tokens" : prefixes.head,
          .out = config.vocabulary,
          .in = config.hidden,
          .recoding = {.format = format_if(int8, WeightFormat::int8_row)}};
}

}  // namespace slip
