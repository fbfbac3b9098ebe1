// What tokenizing needs to know about characters, and Unicode normalisation form C.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace slip {

// The classes that split patterns speak of: \p{L}, \p{M}, \p{N}, \s and the rest.
enum class CharClass : uint8_t { kOther, kLetter, kMark, kNumber, kSpace };

// One code point's properties in 16 bits.
class CharInfo {
 public:
  CharInfo() = default;
  CharInfo(CharClass char_class, bool may_change_in_nfc, uint8_t combining_class)
      : bits_(uint16_t(unsigned(char_class) | unsigned(may_change_in_nfc) << 3 |
                       unsigned(combining_class) << 8)) {}

  CharClass char_class() const { return CharClass(bits_ & 7); }
  // NFC_Quick_Check is "no" or "maybe": normalisation may alter it or join it to what precedes it.
  bool may_change_in_nfc() const { return bits_ & 8; }
  // Canonical_Combining_Class: 0 for all but combining marks.
  uint8_t combining_class() const { return uint8_t(bits_ >> 8); }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 finds a 0 in what a default compares with
  auto operator<=>(const CharInfo&) const = default;

 private:
  uint16_t bits_ = 0;
};

// Properties of every code point in two levels: blocks of 256, equal blocks stored once.
class CharTable {
 public:
  // Built on first use (some milliseconds), then shared.
  static const CharTable& get();

  // `code_point` is at most U+10FFFF.
  CharInfo operator[](uint32_t code_point) const {
    return infos_[size_t(block_of_[code_point >> 8]) << 8 | (code_point & 0xFF)];
  }

 private:
  CharTable();

  std::array<uint16_t, 0x1100> block_of_{};
  std::vector<CharInfo> infos_;
};

// Whether regular expressions count the character as \w.
bool is_word_character(uint32_t code_point);

// Form C of valid UTF-8: `text` itself where it is normalised already, else a view of `storage`.
std::string_view to_nfc(std::string_view text, std::string& storage);

}  // namespace slip
