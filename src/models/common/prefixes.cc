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

void warn_of_unused_head(const Checkpoint& checkpoint, const TextConfig& config,
                         const TextPrefixes& prefixes, std::vector<std::string>& warnings) {
  if (!config.tied_head || !has_tensors(checkpoint, prefixes.head + ".")) return;
  constexpr size_t kTelling = 1 << 20;  // bytes: files of any size are opened at once
  const auto beginning = [&](const std::string& name) {
    const StoredTensor* tensor = checkpoint.find(name);
    return tensor ? tensor->data.first(std::min(kTelling, tensor->data.size()))
                  : std::span<const std::byte>();
  };
  if (std::ranges::equal(beginning(prefixes.head + ".weight"),
                         beginning(prefixes.text + "embed_tokens.weight")))
    return;
  warnings.push_back(cat("config.json says that the embedding is the head (tie_word_embeddings), ",
                         "so ", prefixes.head, " in the files, which is another, is not used"));
}

MadeLinear made_head(const TextConfig& config, const TextPrefixes& prefixes, bool int8) {
  return {.name = prefixes.head,
          .module = config.tied_head ? prefixes.text + "embed_tokens" : prefixes.head,
          .out = config.vocabulary,
          .in = config.hidden,
          .recoding = {.format = format_if(int8, WeightFormat::int8_row)}};
}

}  // namespace slip
