#include "text/pretokenizer.h"

#include "text/pretokenizer_scan.h"
#include "text/tokenizer_json.h"

namespace slip {
namespace {

// Qwen2, Qwen2.5 and Qwen3.
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

// Qwen3.5: combining marks belong to words.
constexpr std::string_view kQwen35Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

Result<PreTokenizer> PreTokenizer::read(const Json& json) {
  PreTokenizer pre_tokenizer;
  if (!json.is_null())
    if (Status added = pre_tokenizer.add(json); !added.ok())
      return std::move(added).failure().in("pre_tokenizer");
  return pre_tokenizer;
}

Status PreTokenizer::add(const Json& json) {
  SLIP_TRY(const JsonObject* object, require_object(json, "a pre-tokenizer"));
  SLIP_TRY(const std::string_view type, read_type(*object));
  if (type == "Sequence") {
    const Json* list = find_field(*object, "pretokenizers");
    if (!list || !list->is_array()) return error("Sequence: \"pretokenizers\" must be a list");
    for (const Json& item : list->get_array()) SLIP_TRY_STATUS(add(item));
    return {};
  }
  if (byte_level_) return error("\"", type, "\" after ByteLevel is not implemented");
  if (type == "Split") return add_split(*object);
  if (type == "ByteLevel") return add_byte_level(*object);
  return error("the type \"", type, "\" is not implemented");
}

Status PreTokenizer::add_split(const JsonObject& object) {
  if (split_ != Split::kNone) return error("more than one Split is not implemented");
  SLIP_TRY(const bool invert, read_flag(object, "invert", false));
  if (invert) return error("Split: \"invert\" is not implemented");
  SLIP_TRY(const std::string_view behavior, require_string(object, "behavior"));
  const Json* pattern = find_field(object, "pattern");
  const Json* regex =
      pattern && pattern->is_object() ? find_field(pattern->get_object(), "Regex") : nullptr;
  if (regex && regex->is_string()) {
    const std::string_view text = json_view(regex->get_string());
    if (text == kQwen2Pattern) split_ = Split::kQwen2;
    if (text == kQwen35Pattern) split_ = Split::kQwen35;
  }
  if (split_ != Split::kNone) {
    if (behavior == "Isolated") return {};
    return error("Split: the behavior \"", behavior, "\" is not implemented for a pattern");
  }
  SLIP_TRY(const std::string_view literal, read_literal_pattern(object));
  if (behavior != "MergedWithPrevious")
    return error("Split: the behavior \"", behavior, "\" is not implemented for a literal");
  split_ = Split::kAfterLiteral;
  literal_ = literal;
  return {};
}

Status PreTokenizer::add_byte_level(const JsonObject& object) {
  SLIP_TRY(const bool prefix_space, read_flag(object, "add_prefix_space", true));
  if (prefix_space) return error("ByteLevel: \"add_prefix_space\" is not implemented");
  SLIP_TRY(const bool use_regex, read_flag(object, "use_regex", true));
  if (use_regex) return error("ByteLevel: \"use_regex\" (GPT-2's pattern) is not implemented");
  byte_level_ = true;
  return {};
}

size_t PreTokenizer::piece_end(std::string_view text, size_t begin) const {
  switch (split_) {
    case Split::kNone: return text.size();
    case Split::kQwen2: return qwen2_piece_end(text, begin);
    case Split::kQwen35: return qwen35_piece_end(text, begin);
    case Split::kAfterLiteral: {
      const size_t hit = text.find(literal_, begin);
      return hit == std::string_view::npos ? text.size() : hit + literal_.size();
    }
  }
  unreachable("PreTokenizer::Split");
}

}  // namespace slip
