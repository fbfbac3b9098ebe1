#include <algorithm>

#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// The character that ends at the end of `text`, which is not empty.
Character decode_last(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && is_continuation(text[begin])) --begin;
  const Character character = decode_character(text.substr(begin));
  if (begin + character.length == text.size()) return character;
  return {static_cast<uint8_t>(text.back()), 1};
}

bool contains_character(std::string_view set, std::string_view character) {
  for (; !set.empty(); set.remove_prefix(decode_character(set).length))
    if (set.substr(0, decode_character(set).length) == character) return true;
  return false;
}

size_t word_length(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && leading_space(text.substr(end)) == 0)
    end += decode_character(text.substr(end)).length;
  return end;
}

size_t last_word_length(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && trailing_space(text.substr(0, begin)) == 0)
    begin -= decode_last(text.substr(0, begin)).length;
  return text.size() - begin;
}

}  // namespace

size_t leading_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Character c = decode_character(text.substr(at));
    // A stray byte 0x85 or 0xA0 is not a character and so not a space.
    if (!is_space(c.code) || (c.length == 1 && c.code >= 0x80)) break;
    at += c.length;
  }
  return at;
}

size_t trailing_space(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Character c = decode_last(text.substr(0, text.size() - bytes));
    if (!is_space(c.code) || (c.length == 1 && c.code >= 0x80)) break;
    bytes += c.length;
  }
  return bytes;
}

std::string_view strip(std::string_view text, std::optional<std::string_view> characters,
                       Side side) {
  if (!characters) {
    if (side != Side::right) text.remove_prefix(leading_space(text));
    if (side != Side::left) text.remove_suffix(trailing_space(text));
    return text;
  }
  while (side != Side::right && !text.empty()) {
    const size_t length = decode_character(text).length;
    if (!contains_character(*characters, text.substr(0, length))) break;
    text.remove_prefix(length);
  }
  while (side != Side::left && !text.empty()) {
    const size_t length = decode_last(text).length;
    if (!contains_character(*characters, text.substr(text.size() - length))) break;
    text.remove_suffix(length);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t limit) {
  std::vector<std::string_view> out;
  if (!separator) {
    text.remove_prefix(leading_space(text));
    for (; !text.empty() && limit != 0; --limit) {
      const size_t end = word_length(text);
      out.push_back(text.substr(0, end));
      text.remove_prefix(end);
      text.remove_prefix(leading_space(text));
    }
    if (!text.empty()) out.push_back(text);
    return out;
  }
  for (; limit != 0; --limit) {
    const size_t at = text.find(*separator);
    if (at == std::string_view::npos) break;
    out.push_back(text.substr(0, at));
    text.remove_prefix(at + separator->size());
  }
  out.push_back(text);
  return out;
}

std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator,
                                               int64_t limit) {
  std::vector<std::string_view> out;
  if (!separator) {
    text.remove_suffix(trailing_space(text));
    for (; !text.empty() && limit != 0; --limit) {
      const size_t begin = text.size() - last_word_length(text);
      out.push_back(text.substr(begin));
      text = text.substr(0, begin);
      text.remove_suffix(trailing_space(text));
    }
    if (!text.empty()) out.push_back(text);
  } else {
    for (; limit != 0; --limit) {
      const size_t at = text.rfind(*separator);
      if (at == std::string_view::npos) break;
      out.push_back(text.substr(at + separator->size()));
      text = text.substr(0, at);
    }
    out.push_back(text);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  const auto ends_line = [](uint32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
  };
  std::vector<std::string_view> out;
  while (!text.empty()) {
    size_t end = 0;
    size_t end_length = 0;
    while (end < text.size() && end_length == 0) {
      const Character c = decode_character(text.substr(end));
      if (ends_line(c.code) && (c.length > 1 || c.code < 0x80)) {
        end_length = text.substr(end).starts_with("\r\n") ? 2 : c.length;
      } else {
        end += c.length;
      }
    }
    out.push_back(text.substr(0, keep_ends ? end + end_length : end));
    text.remove_prefix(end + end_length);
  }
  return out;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t limit) {
  std::string out;
  if (from.empty()) {
    for (; limit != 0; --limit) {
      out += to;
      if (text.empty()) break;
      const size_t length = decode_character(text).length;
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
    return out += text;
  }
  for (; limit != 0; --limit) {
    const size_t at = text.find(from);
    if (at == std::string_view::npos) break;
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
  }
  return out += text;
}

size_t count_occurrences(std::string_view text, std::string_view part) {
  if (part.empty()) return count_characters(text) + 1;
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; ++count)
    at = text.find(part, at + part.size());
  return count;
}

}  // namespace slip::jinja
