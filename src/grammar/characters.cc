#include "grammar/characters.h"

#include <map>
#include <numeric>

#include "base/json_dump.h"
#include "text/utf8.h"

namespace slip {
namespace {

// Characters that stand for themselves in a JSON string.
const CharSet kUnescaped = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, kMaxCodePoint}};

const CharSet kNoTags = complement({{'<', '<'}});

// The sequences that go on from byte `at` on, as a tree: bytes that lead to the same rest are one
// class, so that a reader has few ways to compare however large the set is.
ExprId byte_tree(Rules& rules, const std::vector<ByteSequence>& sequences,
                 const std::vector<size_t>& going_on, size_t at) {
  std::map<std::vector<size_t>, ByteSet> groups;
  for (int byte = 0; byte < 256; ++byte) {
    std::vector<size_t> fitting;
    for (const size_t i : going_on)
      if (sequences[i][at].first <= byte && byte <= sequences[i][at].last) fitting.push_back(i);
    if (!fitting.empty()) groups[std::move(fitting)].add(uint8_t(byte));
  }
  std::vector<ExprId> ways;
  ByteSet last_bytes;
  for (const auto& [fitting, bytes] : groups) {
    // Sequences of different lengths begin differently: all of a group end here, or none.
    if (sequences[fitting[0]].size() == at + 1)
      last_bytes |= bytes;
    else
      ways.push_back(
          rules.sequence({rules.bytes(bytes), byte_tree(rules, sequences, fitting, at + 1)}));
  }
  if (!last_bytes.empty()) ways.insert(ways.begin(), rules.bytes(last_bytes));
  return rules.choice(std::move(ways));
}

}  // namespace

std::string spell(uint32_t code_point, Spelling spelling) {
  std::string text;
  append_utf8(code_point, text);
  if (spelling != Spelling::json_string) return text;
  std::string escaped;
  append_json_escaped(escaped, text);
  return escaped;
}

ExprId one_character(Rules& rules, const CharSet& set, Spelling spelling) {
  const bool escapes = spelling == Spelling::json_string;
  const CharSet unescaped = escapes                         ? intersection(set, kUnescaped)
                            : spelling == Spelling::no_tags ? intersection(set, kNoTags)
                                                            : normalised(set);
  const std::vector<ByteSequence> sequences = utf8_sequences(unescaped);
  std::vector<size_t> all(sequences.size());
  std::iota(all.begin(), all.end(), size_t(0));
  std::vector<ExprId> ways = {byte_tree(rules, sequences, all, 0)};
  if (escapes) {
    std::vector<std::string> escaped;
    for (const CharRange& range : intersection(set, complement(kUnescaped)))
      for (uint32_t c = range.first; c <= range.last; ++c) escaped.push_back(spell(c, spelling));
    if (!escaped.empty()) ways.push_back(rules.literals(std::move(escaped)));
  }
  return rules.choice(std::move(ways));
}

ExprId any_json_character(Rules& rules) {
  const ByteSet hex = ByteSet::of("0123456789abcdefABCDEF");
  const auto hexes = [&](size_t count) {
    return rules.sequence(std::vector<ExprId>(count, rules.bytes(hex)));
  };
  const auto bytes = [&](std::string_view set) { return rules.bytes(ByteSet::of(set)); };
  // Halves of surrogate pairs come in pairs.
  const ExprId escape = rules.choice({
      bytes("\"\\/bfnrt"),
      rules.sequence({rules.literal("u"), bytes("0123456789abcefABCEF"), hexes(3)}),
      rules.sequence({rules.literal("u"), bytes("dD"), bytes("01234567"), hexes(2)}),
      rules.sequence({rules.literal("u"), bytes("dD"), bytes("89abAB"), hexes(2),
                      rules.literal("\\u"), bytes("dD"), bytes("cdefCDEF"), hexes(2)}),
  });
  return rules.choice({one_character(rules, kUnescaped, Spelling::json_string),
                       rules.sequence({rules.literal("\\"), escape})});
}

std::string compact_json(const Json& value) {
  return dump_json(value, JsonStyle{.item_separator = ",", .key_separator = ":"});
}

}  // namespace slip
