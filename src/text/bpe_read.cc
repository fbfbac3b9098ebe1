#include <algorithm>
#include <cstdio>

#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/tokenizer_json.h"

namespace slip {
namespace {

Status require_empty(const JsonObject& model, const char* key) {
  const Json* value = find_field(model, key);
  if (!value || (value->is_string() && value->get_string().empty())) return {};
  return error("\"", key, "\" is not implemented");
}

}  // namespace

Result<Bpe> Bpe::read(const Json& model, bool byte_level, TokenContents& contents) {
  SLIP_TRY(const JsonObject* object, require_object(model, "\"model\""));
  SLIP_TRY(const std::string_view type, read_type(*object));
  if (type != "BPE") return error("the type \"", type, "\" is not implemented");
  const Json* vocabulary = find_field(*object, "vocab");
  if (!vocabulary) return error("\"vocab\" is missing");
  SLIP_TRY(const JsonObject* tokens, require_object(*vocabulary, "\"vocab\""));
  const Json* merges = find_field(*object, "merges");
  if (!merges) return error("\"merges\" is missing");

  Bpe bpe;
  bpe.byte_level_ = byte_level;
  SLIP_TRY_STATUS(bpe.read_vocabulary(*tokens, contents));
  SLIP_TRY_STATUS(bpe.read_options(*object));
  SLIP_TRY_STATUS(bpe.read_merges(*merges));
  bpe.find_single_bytes();
  return bpe;
}

Status Bpe::read_vocabulary(const JsonObject& vocabulary, TokenContents& contents) {
  if (vocabulary.empty()) return error("\"vocab\" is empty");
  tokens_.reserve(vocabulary.size());
  std::string bytes;
  for (const auto& [key, value] : vocabulary) {
    const std::string_view content(key.data(), key.size());
    Result<int32_t> id = read_token_id(value);
    if (!id.ok()) return std::move(id).failure().in(cat("vocab: token \"", content, "\""));
    const size_t index = size_t(id.value());
    if (!is_plausible_id(id.value(), vocabulary.size()))
      return error("vocab: token \"", content, "\" has id ", index, ", but there are only ",
                   vocabulary.size(), " tokens");
    if (index >= contents.size()) contents.resize(index + 1);
    if (contents[index])
      return error("vocab: id ", index, " belongs to \"", *contents[index], "\" and \"", content,
                   "\"");
    contents[index] = content;
    bytes.clear();
    if (!byte_level_)
      tokens_.insert(content, id.value());
    else if (append_byte_level(content, bytes))
      tokens_.insert(bytes, id.value());
    else
      other_tokens_.insert(content, id.value());
  }
  is_whole_ = std::make_unique<std::atomic<bool>[]>(contents.size());
  return {};
}

Status Bpe::read_options(const JsonObject& model) {
  SLIP_TRY_STATUS(require_empty(model, "continuing_subword_prefix"));
  SLIP_TRY_STATUS(require_empty(model, "end_of_word_suffix"));
  if (const Json* dropout = find_field(model, "dropout");
      dropout && !(dropout->is_double() && dropout->get_double() == 0))
    return error("\"dropout\" is not implemented");
  SLIP_TRY(ignore_merges_, read_flag(model, "ignore_merges", false));
  SLIP_TRY(byte_fallback_, read_flag(model, "byte_fallback", false));
  SLIP_TRY(fuse_unknown_, read_flag(model, "fuse_unk", false));
  if (byte_fallback_ && byte_level_)
    return error("\"byte_fallback\" with a byte-level vocabulary is not implemented");
  if (find_field(model, "unk_token")) {
    SLIP_TRY(const std::string_view unknown, require_string(model, "unk_token"));
    unknown_ = find(unknown);
    if (!unknown_) return error("\"unk_token\" \"", unknown, "\" is not in the vocabulary");
  }
  return {};
}

Status Bpe::read_merges(const Json& merges) {
  const JsonArray* list = merges.if_array();
  if (!list) return error("\"merges\" must be a list, but is ", describe_json_kind(merges));
  merges_.reserve(list->size());
  for (const Json& item : *list) {
    std::string_view left;
    std::string_view right;
    if (item.is_string()) {  // "left right", as in merges.txt
      const std::string_view line = json_view(item.get_string());
      const size_t space = line.find(' ');
      if (space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos) {
        left = line.substr(0, space);
        right = line.substr(space + 1);
      }
    } else if (const JsonArray* pair = item.if_array();
               pair && pair->size() == 2 && (*pair)[0].is_string() && (*pair)[1].is_string()) {
      left = json_view((*pair)[0].get_string());
      right = json_view((*pair)[1].get_string());
    }
    if (left.empty() || right.empty())
      return error("merges: entry ", merge_count_, " is not a pair of tokens");
    SLIP_TRY_STATUS(add_merge(left, right));
    ++merge_count_;
  }
  return {};
}

Status Bpe::add_merge(std::string_view left, std::string_view right) {
  std::string joined(left);
  joined += right;
  const std::optional<int32_t> left_id = find(left);
  const std::optional<int32_t> right_id = find(right);
  const std::optional<int32_t> joined_id = find(joined);
  if (!left_id || !right_id || !joined_id)
    return error("merges: entry ", merge_count_, " needs the token \"",
                 !left_id    ? left
                 : !right_id ? right
                             : std::string_view(joined),
                 "\", which is not in the vocabulary");
  merges_.insert(*left_id, *right_id, {.rank = merge_count_, .id = *joined_id});
  return {};
}

void Bpe::find_single_bytes() {
  byte_ids_.fill(-1);
  fallback_ids_.fill(-1);
  for (int i = 0; i < 256; ++i) {
    const char byte = char(i);
    if (byte_level_ || i < 0x80) byte_ids_[size_t(i)] = tokens_.find({&byte, 1}).value_or(-1);
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", unsigned(i));
    fallback_ids_[size_t(i)] = tokens_.find(name).value_or(-1);
  }
}

}  // namespace slip
