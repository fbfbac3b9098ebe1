#include "text/tokenizer_added.h"

#include "text/tokenizer_json.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace slip {
namespace {

bool is_space_at(std::string_view text, size_t pos) {
  const CodePoint point = decode_valid_utf8(text.data() + pos);
  return CharTable::get()[point.value].char_class() == CharClass::kSpace;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const auto is_word_at = [text](size_t pos) {
    return is_word_character(decode_valid_utf8(text.data() + pos).value);
  };
  return (begin == 0 || !is_word_at(previous_code_point(text, begin))) &&
         (end == text.size() || !is_word_at(end));
}

}  // namespace

Result<AddedToken> AddedToken::read(const Json& json) {
  SLIP_TRY(const JsonObject* object, require_object(json, "an added token"));
  const Json* id = find_field(*object, "id");
  if (!id) return error("an added token has no \"id\"");
  SLIP_TRY(const int32_t number, read_token_id(*id));
  return read(json, number);
}

Result<AddedToken> AddedToken::read(const Json& json, int32_t id) {
  SLIP_TRY(const JsonObject* object, require_object(json, "an added token"));
  AddedToken token;
  token.id = id;
  SLIP_TRY(token.content, require_string(*object, "content"));
  SLIP_TRY(token.special, read_flag(*object, "special", false));
  SLIP_TRY(token.normalized, read_flag(*object, "normalized", !token.special));
  SLIP_TRY(token.single_word, read_flag(*object, "single_word", false));
  SLIP_TRY(token.lstrip, read_flag(*object, "lstrip", false));
  SLIP_TRY(token.rstrip, read_flag(*object, "rstrip", false));
  return token;
}

uint32_t AddedTokenMatcher::child_of(uint32_t node, char byte) const {
  const auto child = children_.find(uint64_t(node) << 8 | static_cast<unsigned char>(byte));
  return child == children_.end() ? kNone : child->second;
}

void AddedTokenMatcher::add(const AddedToken& token, std::string_view text) {
  starts_[static_cast<unsigned char>(text[0])] = true;
  uint32_t node = 0;
  for (const char byte : text) {
    uint32_t child = child_of(node, byte);
    if (child == kNone) {
      child = uint32_t(token_at_.size());
      token_at_.push_back(kNone);
      children_[uint64_t(node) << 8 | static_cast<unsigned char>(byte)] = child;
    }
    node = child;
  }
  token_at_[node] = uint32_t(tokens_.size());
  tokens_.push_back(token);
}

AddedTokenMatcher::Match AddedTokenMatcher::longest_match(std::string_view text,
                                                          size_t begin) const {
  Match match;
  uint32_t node = 0;
  for (size_t pos = begin; pos < text.size();) {
    node = child_of(node, text[pos++]);
    if (node == kNone) break;
    if (token_at_[node] != kNone) match = {pos, token_at_[node]};
  }
  return match;
}

void AddedTokenMatcher::split(std::string_view text,
                              const std::function<void(std::string_view)>& on_text,
                              const std::function<void(int32_t)>& on_token) const {
  size_t done = 0;
  for (size_t pos = 0; pos < text.size();) {
    const Match match =
        starts_[static_cast<unsigned char>(text[pos])] ? longest_match(text, pos) : Match{};
    if (match.token == kNone) {
      ++pos;
      continue;
    }
    const AddedToken& token = tokens_[match.token];
    size_t begin = pos;
    size_t end = match.end;
    pos = match.end;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.lstrip)
      while (begin > done && is_space_at(text, previous_code_point(text, begin)))
        begin = previous_code_point(text, begin);
    if (token.rstrip)
      while (end < text.size() && is_space_at(text, end))
        end += decode_valid_utf8(text.data() + end).length;
    if (begin > done) on_text(text.substr(done, begin - done));
    on_token(token.id);
    done = end;
  }
  if (done < text.size()) on_text(text.substr(done));
}

}  // namespace slip
