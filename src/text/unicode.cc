#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>

namespace slip {
namespace {

constexpr uint32_t kCodePoints = 0x110000;

struct ClassRange {
  uint32_t first;
  uint32_t last;
  CharClass char_class;
};

// utf8proc 2.8 knows Unicode 15.0. The splits of published tokenizers are those of
// Oniguruma 6.9.10, which knows 16.0. These are the letters, marks and numbers that came between,
// found by asking Hugging Face's tokenizers 0.23.2 about every code point.
constexpr ClassRange kNewerThanUtf8proc[] = {
    {0x897, 0x897, CharClass::kMark},       {0x1C89, 0x1C8A, CharClass::kLetter},
    {0xA7CB, 0xA7CD, CharClass::kLetter},   {0xA7DA, 0xA7DC, CharClass::kLetter},
    {0x105C0, 0x105F3, CharClass::kLetter}, {0x10D40, 0x10D49, CharClass::kNumber},
    {0x10D4A, 0x10D65, CharClass::kLetter}, {0x10D69, 0x10D6D, CharClass::kMark},
    {0x10D6F, 0x10D85, CharClass::kLetter}, {0x10EC2, 0x10EC4, CharClass::kLetter},
    {0x10EFC, 0x10EFC, CharClass::kMark},   {0x11380, 0x11389, CharClass::kLetter},
    {0x1138B, 0x1138B, CharClass::kLetter}, {0x1138E, 0x1138E, CharClass::kLetter},
    {0x11390, 0x113B5, CharClass::kLetter}, {0x113B7, 0x113B7, CharClass::kLetter},
    {0x113B8, 0x113C0, CharClass::kMark},   {0x113C2, 0x113C2, CharClass::kMark},
    {0x113C5, 0x113C5, CharClass::kMark},   {0x113C7, 0x113CA, CharClass::kMark},
    {0x113CC, 0x113D0, CharClass::kMark},   {0x113D1, 0x113D1, CharClass::kLetter},
    {0x113D2, 0x113D2, CharClass::kMark},   {0x113D3, 0x113D3, CharClass::kLetter},
    {0x113E1, 0x113E2, CharClass::kMark},   {0x116D0, 0x116E3, CharClass::kNumber},
    {0x11BC0, 0x11BE0, CharClass::kLetter}, {0x11BF0, 0x11BF9, CharClass::kNumber},
    {0x11F5A, 0x11F5A, CharClass::kMark},   {0x13460, 0x143FA, CharClass::kLetter},
    {0x16100, 0x1611D, CharClass::kLetter}, {0x1611E, 0x1612F, CharClass::kMark},
    {0x16130, 0x16139, CharClass::kNumber}, {0x16D40, 0x16D6C, CharClass::kLetter},
    {0x16D70, 0x16D79, CharClass::kNumber}, {0x18CFF, 0x18CFF, CharClass::kLetter},
    {0x1CCF0, 0x1CCF9, CharClass::kNumber}, {0x1E5D0, 0x1E5ED, CharClass::kLetter},
    {0x1E5EE, 0x1E5EF, CharClass::kMark},   {0x1E5F0, 0x1E5F0, CharClass::kLetter},
    {0x1E5F1, 0x1E5FA, CharClass::kNumber}, {0x2EBF0, 0x2EE5D, CharClass::kLetter},
};

struct CodepointRange {
  uint32_t first;
  uint32_t last;
};

// The same library normalises as Unicode 9.0 does: later marks are not reordered, and the later
// composition U+11938 does not happen. To give its ids, neither must happen here.
constexpr CodepointRange kNewerThanNormalisation[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
    {0x11938, 0x11938},
};

bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

CharClass class_of(uint32_t code_point) {
  if (is_space(code_point)) return CharClass::kSpace;
  switch (utf8proc_category(utf8proc_int32_t(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharClass::kLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return CharClass::kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharClass::kNumber;
    default: return CharClass::kOther;
  }
}

struct Properties {
  CharClass char_class = CharClass::kOther;
  bool may_change_in_nfc = false;
  uint8_t combining_class = 0;
};
using PropertyList = std::vector<Properties>;  // of all code points

bool is_newer_than_normalisation(uint32_t code_point) {
  return std::any_of(
      std::begin(kNewerThanNormalisation), std::end(kNewerThanNormalisation),
      [=](CodepointRange r) { return code_point >= r.first && code_point <= r.last; });
}

// Marks what form C replaces, and what it can swallow: that is whatever follows the first character
// of some decomposition.
void mark_nfc_changes(uint32_t code_point, PropertyList& all) {
  const auto c = utf8proc_int32_t(code_point);
  utf8proc_int32_t points[16];
  int boundary_class = 0;
  const utf8proc_ssize_t length =
      utf8proc_decompose_char(c, points, std::size(points), UTF8PROC_DECOMPOSE, &boundary_class);
  if (length < 1 || (length == 1 && points[0] == c)) return;
  const std::vector<utf8proc_int32_t> tail(points + 1, points + length);
  const utf8proc_ssize_t composed = utf8proc_normalize_utf32(
      points, length, utf8proc_option_t(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  if (composed == 1 && points[0] == c) {
    for (const utf8proc_int32_t swallowed : tail) all[size_t(swallowed)].may_change_in_nfc = true;
  } else {
    all[code_point].may_change_in_nfc = true;
  }
}

PropertyList list_properties() {
  PropertyList all(kCodePoints);
  for (uint32_t c = 0; c < kCodePoints; ++c) {
    const utf8proc_property_t* property = utf8proc_get_property(utf8proc_int32_t(c));
    all[c].char_class = class_of(c);
    const bool has_decomposition = property->decomp_seqindex != UINT16_MAX;
    if ((property->combining_class == 0 && !has_decomposition) || is_newer_than_normalisation(c))
      continue;
    all[c].combining_class = uint8_t(property->combining_class);
    if (has_decomposition) mark_nfc_changes(c, all);
  }
  for (const ClassRange& range : kNewerThanUtf8proc)
    for (uint32_t c = range.first; c <= range.last; ++c) all[c] = {.char_class = range.char_class};
  // Hangul vowels and final consonants compose by arithmetic, not by table.
  for (uint32_t c = 0x1161; c <= 0x1175; ++c) all[c].may_change_in_nfc = true;
  for (uint32_t c = 0x11A8; c <= 0x11C2; ++c) all[c].may_change_in_nfc = true;
  return all;
}

}  // namespace

const CharTable& CharTable::get() {
  static const CharTable table;
  return table;
}

CharTable::CharTable() {
  const PropertyList all = list_properties();
  std::map<std::vector<CharInfo>, uint16_t> known;
  for (uint32_t block = 0; block < kCodePoints >> 8; ++block) {
    std::vector<CharInfo> infos;
    for (uint32_t c = block << 8; c < (block + 1) << 8; ++c)
      infos.emplace_back(all[c].char_class, all[c].may_change_in_nfc, all[c].combining_class);
    const auto [entry, added] = known.try_emplace(infos, uint16_t(known.size()));
    if (added) infos_.insert(infos_.end(), infos.begin(), infos.end());
    block_of_[block] = entry->second;
  }
}

bool is_word_character(uint32_t code_point) {
  switch (CharTable::get()[code_point].char_class()) {
    case CharClass::kLetter:
    case CharClass::kMark: return true;
    case CharClass::kSpace: return false;
    case CharClass::kNumber:
      return utf8proc_category(utf8proc_int32_t(code_point)) != UTF8PROC_CATEGORY_NO;
    case CharClass::kOther: break;
  }
  const bool joins = code_point == 0x200C || code_point == 0x200D;
  const bool circled_letter = (code_point >= 0x24B6 && code_point <= 0x24E9) ||
                              (code_point >= 0x1F130 && code_point <= 0x1F189);
  return joins || circled_letter ||
         utf8proc_category(utf8proc_int32_t(code_point)) == UTF8PROC_CATEGORY_PC;
}

}  // namespace slip
