#include <gtest/gtest.h>

#include "text/unicode.h"
#include "text/utf8.h"

namespace slip {
namespace {

std::string nfc(const std::string& text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

// From Hugging Face's tokenizers 0.23.2, asked about every code point with \p{L}, \p{M}, \p{N}, \s.
// Differs if utf8proc's Unicode version is not the one that unicode.cc completes to 16.0.
TEST(CharTable, ClassesOfAllCodePointsAreThoseOfTheReference) {
  std::array<int, 5> counts{};
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const auto value = uint8_t(CharTable::get()[c].char_class());
    ++counts[value];
    hash = (hash ^ value) * 0x100000001B3u;
  }
  EXPECT_EQ(counts, (std::array<int, 5>{966599, 141028, 2501, 1911, 25}));
  EXPECT_EQ(hash, 0xC6C9EA73525DD586u);
}

TEST(Nfc, NormalisedTextIsReturnedWithoutACopy) {
  const std::string text = "ASCII, caf\u00E9, \u65E5\u672C, \uAC01, \u0E07\u0E48, \u0928\u094D";
  std::string storage;
  EXPECT_EQ(to_nfc(text, storage).data(), text.data());
}

TEST(Nfc, ComposesAndReorders) {
  EXPECT_EQ(nfc("cafe\u0301!"), "caf\u00E9!");
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(nfc("a\u0307\u0323"), "\u1EA1\u0307");
  EXPECT_EQ(nfc("e\u0302\u0301x Vie\u0323\u0302t"), "\u1EBFx Vi\u1EC7t");
  EXPECT_EQ(nfc("\u212B"), "\u00C5") << "a singleton";
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C") << "excluded from composition";
  EXPECT_EQ(nfc("\u1100\u1161\u11A8 \uAC00\u11A8"), "\uAC01 \uAC01") << "Hangul";
  EXPECT_EQ(nfc("\u0301e\u0301"), "\u0301\u00E9") << "starts with a mark";
}

// The reference normalises with Unicode 9.0: U+1ABF (Unicode 13, class 220) is not reordered.
TEST(Nfc, LeavesMarksThatTheReferenceDoesNotKnow) {
  EXPECT_EQ(nfc("q\u0307\u1ABF"), "q\u0307\u1ABF");
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");
}

}  // namespace
}  // namespace slip
