#include "slipstream/common/terminal_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/utf8.h"

namespace slip {

size_t next_character(std::string_view text, size_t at) {
  CodePoint previous = decode_valid_utf8(text.data() + at);
  at += previous.length;
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    const CodePoint next = decode_valid_utf8(text.data() + at);
    if (utf8proc_grapheme_break_stateful(utf8proc_int32_t(previous.value),
                                         utf8proc_int32_t(next.value), &state))
      break;
    at += next.length;
    previous = next;
  }
  return at;
}

size_t previous_character(std::string_view text, size_t at) {
  // Clusters can only be found from the front; a line break is always a border to start from.
  const size_t newline = at >= 2 ? text.rfind('\n', at - 2) : std::string_view::npos;
  size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  for (size_t end; begin < at; begin = end) {
    end = next_character(text, begin);
    if (end >= at) return begin;
  }
  return begin;
}

int character_width(std::string_view character) {
  // A cluster is as wide as its widest part: marks and joiners add nothing. Terminals show the
  // emoji form (U+FE0F) two columns wide.
  int width = 0;
  for (size_t at = 0; at < character.size();) {
    const CodePoint point = decode_valid_utf8(character.data() + at);
    const int own =
        point.value == 0xFE0F && width > 0 ? 2 : utf8proc_charwidth(utf8proc_int32_t(point.value));
    width = std::max(width, own);
    at += point.length;
  }
  return width;
}

int display_width(std::string_view text) {
  int width = 0;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = next_character(text, at);
    width += character_width(text.substr(at, end - at));
  }
  return width;
}

std::string without_controls(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, the other way of writing escape sequences: C2 80 to C2 9F.
    const bool c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c1) {
      ++i;
    } else if ((byte >= 0x20 && byte != 0x7F) || byte == '\n' || byte == '\t') {
      clean += text[i];
    }
  }
  return clean;
}

}  // namespace slip
