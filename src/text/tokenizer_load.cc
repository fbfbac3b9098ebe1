#include <charconv>

#include "base/files.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace slip {
namespace {

const Json kNull;

const Json& field_or_null(const JsonObject& object, std::string_view key) {
  const Json* value = find_field(object, key);
  return value ? *value : kNull;
}

Result<std::vector<AddedToken>> read_added_tokens(const Json& list) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  if (!list.is_array())
    return error("\"added_tokens\" must be a list, but is ", describe_json_kind(list));
  for (const Json& item : list.get_array()) {
    SLIP_TRY(AddedToken token, AddedToken::read(item));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// tokenizer_config.json's {"248070": {"content": ...}, ...}. Tokens that `known` has are left out:
// tokenizer.json decides about those.
Status append_decoder_tokens(const Json& json, std::vector<AddedToken>& known) {
  if (json.is_null()) return {};
  SLIP_TRY(const JsonObject* entries, require_object(json, "\"added_tokens_decoder\""));
  TokenTable known_ids;
  for (const AddedToken& token : known) known_ids.insert(token.content, token.id);
  for (const auto& [key, value] : *entries) {
    int32_t id = -1;
    const char* key_end = key.data() + key.size();
    const auto [end, code] = std::from_chars(key.data(), key_end, id);
    if (code != std::errc() || end != key_end || id < 0)
      return error("\"added_tokens_decoder\": \"", std::string_view(key.data(), key.size()),
                   "\" is not a token id");
    SLIP_TRY(AddedToken token, AddedToken::read(value, id));
    if (known_ids.find(token.content) == id) continue;
    known.push_back(std::move(token));
  }
  return {};
}

// "<bos>", or {"content": "<bos>", ...}.
std::optional<std::string_view> token_name(const Json& json) {
  const Json* name = &json;
  if (json.is_object()) name = find_field(json.get_object(), "content");
  if (!name || !name->is_string()) return std::nullopt;
  return json_view(name->get_string());
}

// What a post-processor, {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<bos>",
// ...}}, {"Sequence": ...}], ...} or a Sequence with one, writes before a text.
std::optional<std::string_view> first_special_token(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  if (const Json& list = field_or_null(json.get_object(), "processors"); list.is_array())
    for (const Json& one : list.get_array())
      if (const auto found = first_special_token(one)) return found;
  const Json& single = field_or_null(json.get_object(), "single");
  if (!single.is_array() || single.get_array().empty()) return std::nullopt;
  const Json& first = single.get_array()[0];
  const Json* special =
      first.is_object() ? find_field(first.get_object(), "SpecialToken") : nullptr;
  if (!special || !special->is_object()) return std::nullopt;
  return token_name(field_or_null(special->get_object(), "id"));
}

}  // namespace

Result<Tokenizer> Tokenizer::from_json(std::string_view json_text, const std::string& source) {
  SLIP_TRY(const Json json, parse_json(json_text, source));
  Result<Tokenizer> tokenizer = build(json, {});
  if (!tokenizer.ok()) return std::move(tokenizer).failure().in(source);
  return tokenizer;
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& model_dir) {
  const std::filesystem::path path = model_dir / "tokenizer.json";
  SLIP_TRY(const std::string text, read_text_file(path));
  SLIP_TRY(const Json json, parse_json(text, path.string()));
  Json config = JsonObject();
  const std::filesystem::path config_path = model_dir / "tokenizer_config.json";
  std::error_code ignored;
  if (std::filesystem::exists(config_path, ignored)) {
    SLIP_TRY(const std::string config_text, read_text_file(config_path));
    SLIP_TRY(config, parse_json(config_text, config_path.string()));
    if (!config.is_object()) return error(config_path.string(), ": must be an object");
  }
  Result<Tokenizer> tokenizer = build(json, config.get_object());
  if (!tokenizer.ok()) return std::move(tokenizer).failure().in(path.string());
  return tokenizer;
}

Result<Tokenizer> Tokenizer::build(const Json& json, const JsonObject& config) {
  SLIP_TRY(const JsonObject* object, require_object(json, "a tokenizer"));
  const Json* model = find_field(*object, "model");
  if (!model) return error("\"model\" is missing");

  Tokenizer tokenizer;
  SLIP_TRY(tokenizer.normalizer_, Normalizer::read(field_or_null(*object, "normalizer")));
  SLIP_TRY(tokenizer.pre_tokenizer_, PreTokenizer::read(field_or_null(*object, "pre_tokenizer")));
  const bool byte_level = tokenizer.pre_tokenizer_.byte_level();
  SLIP_TRY(const TokenDecoder decoder,
           TokenDecoder::read(field_or_null(*object, "decoder"), byte_level));
  TokenContents contents;
  Result<Bpe> bpe = Bpe::read(*model, byte_level, contents);
  if (!bpe.ok()) return std::move(bpe).failure().in("model");
  tokenizer.bpe_ = std::move(bpe).value();

  SLIP_TRY(std::vector<AddedToken> added,
           read_added_tokens(field_or_null(*object, "added_tokens")));
  SLIP_TRY_STATUS(append_decoder_tokens(field_or_null(config, "added_tokens_decoder"), added));
  tokenizer.flags_.resize(contents.size());
  SLIP_TRY_STATUS(tokenizer.add_tokens(added, contents));
  SLIP_TRY_STATUS(tokenizer.find_bos(*object, config));
  tokenizer.store_bytes(contents, decoder);
  return tokenizer;
}

Status Tokenizer::find_bos(const JsonObject& tokenizer, const JsonObject& config) {
  std::optional<std::string_view> name =
      first_special_token(field_or_null(tokenizer, "post_processor"));
  if (find_field(config, "add_bos_token")) {
    SLIP_TRY(const bool wanted, read_flag(config, "add_bos_token", false));
    const std::optional<std::string_view> configured =
        token_name(field_or_null(config, "bos_token"));
    if (!wanted) name.reset();
    if (wanted && configured) name = configured;
  }
  if (!name) return {};
  bos_ = find(*name);
  if (!bos_)
    return error("the token \"", *name, "\" that begins every text is not in the vocabulary");
  return {};
}

Status Tokenizer::add_tokens(const std::vector<AddedToken>& tokens, TokenContents& contents) {
  const size_t plausible = contents.size() + tokens.size();
  std::string storage;
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    const size_t index = size_t(token.id);
    if (!is_plausible_id(token.id, plausible))
      return error("added token \"", token.content, "\" has id ", index, ", but there are only ",
                   plausible, " tokens");
    if (const std::optional<int32_t> known = find(token.content); known && *known != token.id)
      return error("added token \"", token.content, "\" has the ids ", *known, " and ", index);
    if (index >= contents.size()) contents.resize(index + 1);
    if (contents[index] && *contents[index] != token.content)
      return error("id ", index, " belongs to \"", *contents[index], "\" and to the added token \"",
                   token.content, "\"");
    contents[index] = token.content;
    flags_.resize(contents.size());
    if (token.special) flags_[index] |= kSpecial;
    if (!added_ids_.insert(token.content, token.id)) continue;
    if (!token.normalized)
      raw_matcher_.add(token, token.content);
    else if (const auto text = normalizer_.apply(token.content, storage); !text.empty())
      normalised_matcher_.add(token, text);
  }
  return {};
}

void Tokenizer::store_bytes(const TokenContents& contents, const TokenDecoder& decoder) {
  byte_ends_.reserve(contents.size());
  for (size_t id = 0; id < contents.size(); ++id) {
    if (contents[id] && decoder.append_bytes(*contents[id], bytes_)) flags_[id] |= kFallbackByte;
    byte_ends_.push_back(bytes_.size());
  }
}

}  // namespace slip
