// Sets of characters, and the byte sequences that spell them in UTF-8.
#pragma once

#include <cstdint>
#include <vector>

namespace slip {

struct CharRange {
  uint32_t first;
  uint32_t last;
  bool operator==(const CharRange&) const = default;
};
using CharSet = std::vector<CharRange>;

inline constexpr uint32_t kMaxCodePoint = 0x10FFFF;

// Sorted, without overlaps, without surrogates and what lies beyond Unicode.
CharSet normalised(CharSet set);
CharSet complement(const CharSet& set);
CharSet intersection(const CharSet& a, const CharSet& b);
bool contains(const CharSet& normalised_set, uint32_t code_point);

struct ByteRange {
  uint8_t first;
  uint8_t last;
};
using ByteSequence = std::vector<ByteRange>;

// Alternatives; any choice of one byte per range is the UTF-8 of a character of the set.
std::vector<ByteSequence> utf8_sequences(const CharSet& set);

}  // namespace slip
