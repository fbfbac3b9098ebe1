#include "grammar/utf8_ranges.h"

#include <algorithm>
#include <string>

#include "text/utf8.h"

namespace slip {
namespace {

constexpr CharRange kSurrogates = {0xD800, 0xDFFF};
// The last characters of one, two, three and four bytes.
constexpr uint32_t kLastOfLength[] = {0x7F, 0x7FF, 0xFFFF, kMaxCodePoint};

// Both ends have the same length. Where they differ before the last byte, the range is cut so that
// all later bytes run over all their values.
void add_sequences(uint32_t first, uint32_t last, std::vector<ByteSequence>& out) {
  std::string low;
  append_utf8(first, low);
  for (size_t tail = low.size() - 1; tail > 0; --tail) {
    const uint32_t block = (uint32_t(1) << (6 * tail)) - 1;
    if ((first & ~block) == (last & ~block)) continue;
    if ((first & block) != 0) {
      add_sequences(first, first | block, out);
      add_sequences((first | block) + 1, last, out);
      return;
    }
    if ((last & block) != block) {
      add_sequences(first, (last & ~block) - 1, out);
      add_sequences(last & ~block, last, out);
      return;
    }
  }
  std::string high;
  append_utf8(last, high);
  ByteSequence sequence;
  for (size_t i = 0; i < low.size(); ++i) sequence.push_back({uint8_t(low[i]), uint8_t(high[i])});
  out.push_back(std::move(sequence));
}

}  // namespace

CharSet normalised(CharSet set) {
  std::erase_if(set, [](const CharRange& range) { return range.first > range.last; });
  std::sort(set.begin(), set.end(),
            [](const CharRange& a, const CharRange& b) { return a.first < b.first; });
  CharSet joined;
  const auto add = [&joined](uint32_t first, uint32_t last) {
    last = std::min(last, kMaxCodePoint);
    if (first > last) return;
    if (!joined.empty() && first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, last);
    else
      joined.push_back({first, last});
  };
  for (const CharRange& range : set) {
    if (range.first < kSurrogates.first)
      add(range.first, std::min(range.last, kSurrogates.first - 1));
    if (range.last > kSurrogates.last) add(std::max(range.first, kSurrogates.last + 1), range.last);
  }
  return joined;
}

CharSet complement(const CharSet& set) {
  CharSet rest;
  uint32_t from = 0;
  for (const CharRange& range : normalised(set)) {
    if (range.first > from) rest.push_back({from, range.first - 1});
    from = range.last + 1;
  }
  if (from <= kMaxCodePoint) rest.push_back({from, kMaxCodePoint});
  return normalised(std::move(rest));
}

CharSet intersection(const CharSet& a, const CharSet& b) {
  CharSet both;
  for (const CharRange& x : normalised(a))
    for (const CharRange& y : normalised(b))
      both.push_back({std::max(x.first, y.first), std::min(x.last, y.last)});
  return normalised(std::move(both));
}

bool contains(const CharSet& normalised_set, uint32_t code_point) {
  return std::any_of(normalised_set.begin(), normalised_set.end(), [&](const CharRange& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

std::vector<ByteSequence> utf8_sequences(const CharSet& set) {
  std::vector<ByteSequence> sequences;
  for (const CharRange& range : normalised(set)) {
    uint32_t first = range.first;
    for (const uint32_t last_of_length : kLastOfLength) {
      if (first > last_of_length || first > range.last) continue;
      const uint32_t last = std::min(range.last, last_of_length);
      add_sequences(first, last, sequences);
      first = last + 1;
    }
  }
  return sequences;
}

}  // namespace slip
