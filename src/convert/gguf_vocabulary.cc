#include "convert/gguf_vocabulary.h"

#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "engine/generation_config.h"
#include "text/tokenizer.h"

namespace slip {
namespace {

// What a token is, with the numbers of the file.
enum TokenKind : int32_t { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };

struct TokenList {
  std::vector<std::string> texts;
  std::vector<int32_t> kinds;

  explicit TokenList(int64_t size) : kinds(size_t(size), kUnused) {
    for (int64_t id = 0; id < size; ++id) texts.push_back(cat("[PAD", id, "]"));
  }
  Status set(const Json* id, std::string text, TokenKind kind) {
    if (!id || !id->is_int64() || id->get_int64() < 0 || id->get_int64() >= int64_t(texts.size()))
      return error("token \"", text, "\" has no id below ", texts.size(),
                   ", the rows of the embedding");
    const auto index = size_t(id->get_int64());
    texts[index] = std::move(text);
    kinds[index] = kind;
    return {};
  }
};

// The name under which llama.cpp knows how text is cut before merging.
Result<std::string> pre_tokenizer_name(const Json& tokenizer) {
  const Json* pre = member_of(&tokenizer, "pre_tokenizer");
  const std::string text = pre ? dump_json(*pre) : "";
  if (text.find("ByteLevel") == std::string::npos)
    return error("its pre_tokenizer is not byte-level, and other ones are not exported yet");
  return std::string(text.find(R"(\\p{M})") == std::string::npos ? "qwen2" : "qwen35");
}

Result<TokenList> read_tokens(const Json& tokenizer, int64_t size) {
  TokenList tokens(size);
  const Json* vocabulary = member_of(member_of(&tokenizer, "model"), "vocab");
  if (!vocabulary || !vocabulary->is_object()) return error("\"model\" has no \"vocab\"");
  for (const auto& entry : vocabulary->get_object())
    SLIP_TRY_STATUS(tokens.set(&entry.value(), std::string(entry.key()), kNormal));
  const Json* added = member_of(&tokenizer, "added_tokens");
  if (!added || !added->is_array()) return tokens;
  for (const Json& token : added->get_array()) {
    const Json* special = member_of(&token, "special");
    const bool is_special = special && special->is_bool() && special->get_bool();
    SLIP_TRY_STATUS(tokens.set(member_of(&token, "id"),
                               std::string(text_or_empty(member_of(&token, "content"))),
                               is_special ? kControl : kUserDefined));
  }
  return tokens;
}

Result<std::vector<std::string>> read_merges(const Json& tokenizer) {
  const Json* list = member_of(member_of(&tokenizer, "model"), "merges");
  if (!list || !list->is_array()) return error("\"model\" has no \"merges\"");
  std::vector<std::string> merges;
  for (const Json& merge : list->get_array()) {
    if (merge.is_string()) {
      merges.emplace_back(text_or_empty(&merge));
    } else if (merge.is_array() && merge.get_array().size() == 2) {
      merges.push_back(
          cat(text_or_empty(&merge.get_array()[0]), " ", text_or_empty(&merge.get_array()[1])));
    } else {
      return error("merges: entry ", merges.size(), " is not a pair of tokens");
    }
  }
  return merges;
}

Status add_from(const Json& tokenizer, int64_t size, GgufMetadata& metadata) {
  SLIP_TRY(const std::string pre, pre_tokenizer_name(tokenizer));
  SLIP_TRY(const TokenList tokens, read_tokens(tokenizer, size));
  SLIP_TRY(const std::vector<std::string> merges, read_merges(tokenizer));
  metadata.add("tokenizer.ggml.model", "gpt2");
  metadata.add("tokenizer.ggml.pre", pre);
  metadata.add("tokenizer.ggml.tokens", tokens.texts);
  metadata.add("tokenizer.ggml.token_type", tokens.kinds);
  metadata.add("tokenizer.ggml.merges", merges);
  metadata.add("tokenizer.ggml.add_bos_token", false);
  return {};
}

}  // namespace

Status add_vocabulary(const std::filesystem::path& model_folder, int64_t size,
                      GgufMetadata& metadata) {
  const std::filesystem::path path = model_folder / "tokenizer.json";
  SLIP_TRY(const std::string text, read_text_file(path));
  SLIP_TRY(const Json tokenizer, parse_json(text, path.string()));
  if (Status added = add_from(tokenizer, size, metadata); !added.ok())
    return std::move(added).failure().in(path.string());

  SLIP_TRY(const GenerationDefaults defaults, read_generation_defaults(model_folder));
  if (!defaults.stop_ids.empty())
    metadata.add("tokenizer.ggml.eos_token_id", uint32_t(defaults.stop_ids.front()));
  if (defaults.stop_ids.size() > 1)
    metadata.add("tokenizer.ggml.eot_token_id", uint32_t(defaults.stop_ids[1]));
  if (const Result<std::string> chat = read_text_file(model_folder / "chat_template.jinja");
      chat.ok())
    metadata.add("tokenizer.chat_template", chat.value());
  return {};
}

void add_placeholder_vocabulary(int64_t size, GgufMetadata& metadata) {
  // The 95 printable bytes stand for themselves, so that any ASCII text has tokens.
  TokenList tokens(size);
  for (int64_t id = 0; id < size; ++id) {
    const bool is_byte = id >= '!' && id <= '~';
    tokens.texts[size_t(id)] = is_byte ? std::string(1, char(id)) : cat("t", id);
    tokens.kinds[size_t(id)] = kNormal;
  }
  const std::vector<std::string> merges = {"! !"};
  tokens.texts[0] = "!!";
  metadata.add("tokenizer.ggml.model", "gpt2");
  metadata.add("tokenizer.ggml.pre", "qwen2");
  metadata.add("tokenizer.ggml.tokens", tokens.texts);
  metadata.add("tokenizer.ggml.token_type", tokens.kinds);
  metadata.add("tokenizer.ggml.merges", merges);
  metadata.add("tokenizer.ggml.add_bos_token", false);
  metadata.add("tokenizer.ggml.eos_token_id", uint32_t(1));
}

}  // namespace slip
