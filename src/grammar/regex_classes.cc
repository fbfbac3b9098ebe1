#include "grammar/regex_classes.h"

#include "text/unicode.h"

namespace slip {
namespace {

CharSet characters_of(CharClass wanted) {
  const CharTable& table = CharTable::get();
  CharSet set;
  for (uint32_t c = 0; c <= kMaxCodePoint; ++c) {
    if (table[c].char_class() != wanted) continue;
    if (!set.empty() && set.back().last + 1 == c)
      set.back().last = c;
    else
      set.push_back({c, c});
  }
  return normalised(std::move(set));
}

}  // namespace

CharSet any_but_line_ends() { return complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}); }

std::optional<CharSet> escaped_class(char letter) {
  const CharSet digits = {{'0', '9'}};
  const CharSet words = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  const CharSet spaces = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                          {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                          {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  switch (letter) {
    case 'd': return digits;
    case 'D': return complement(digits);
    case 'w': return words;
    case 'W': return complement(words);
    case 's': return spaces;
    case 'S': return complement(spaces);
    case 't': return CharSet{{'\t', '\t'}};
    case 'n': return CharSet{{'\n', '\n'}};
    case 'r': return CharSet{{'\r', '\r'}};
    case 'f': return CharSet{{'\f', '\f'}};
    case 'v': return CharSet{{'\v', '\v'}};
    case '0': return CharSet{{0, 0}};
    default: return std::nullopt;
  }
}

std::optional<CharSet> unicode_property(std::string_view name) {
  if (name == "L" || name == "Letter") return characters_of(CharClass::kLetter);
  if (name == "M" || name == "Mark") return characters_of(CharClass::kMark);
  if (name == "N" || name == "Number") return characters_of(CharClass::kNumber);
  return std::nullopt;
}

}  // namespace slip
