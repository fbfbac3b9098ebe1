#include "grammar/json_rules.h"

#include <algorithm>
#include <map>

#include "base/json_dump.h"
#include "grammar/characters.h"
#include "text/utf8.h"

namespace slip {
namespace {

constexpr int kMaxIndentation = 32;
constexpr size_t kMaxKeyBytes = 256;  // what a key shares with others is walked in a recursion
constexpr size_t kMaxKeyCharacters = 5000;  // each needs some forty instructions
constexpr size_t kMaxCopied = 8 << 20;  // bytes of JSON; as values they take up to 16 times that

ExprId digits(Rules& rules, int64_t min, int64_t max) {
  return rules.repeat(rules.bytes(ByteSet::range('0', '9')), min, max);
}

ExprId unbounded_integer(Rules& rules) {
  return rules.sequence(
      {rules.optional(rules.literal("-")),
       rules.choice(
           {rules.literal("0"), rules.sequence({rules.bytes(ByteSet::range('1', '9')),
                                                digits(rules, 0, kMaxIntegerDigits - 1)})})});
}

ExprId unbounded_number(Rules& rules) {
  const ExprId fraction =
      rules.sequence({rules.literal("."), digits(rules, 1, kMaxFractionDigits)});
  const ExprId exponent =
      rules.sequence({rules.bytes(ByteSet::of("eE")),
                      rules.optional(rules.bytes(ByteSet::of("+-"))), digits(rules, 1, 2)});
  return rules.sequence(
      {unbounded_integer(rules), rules.optional(fraction), rules.optional(exponent)});
}

// The characters by which some of the keys go on after what they share.
struct KeyTree {
  bool is_key = false;
  std::map<uint32_t, KeyTree> next;
};

}  // namespace

JsonRules::JsonRules(Rules& rules)
    : rules_(rules),
      character_(any_json_character(rules)),
      space_(rules.add_rule("white space")),
      string_(rules.add_rule("a string")),
      number_(rules.add_rule("a number")),
      integer_(rules.add_rule("an integer")),
      value_(rules.add_rule("a value")),
      object_(rules.add_rule("an object")) {
  const ExprId indentation = rules.repeat(rules.bytes(ByteSet::of(" \t")), 0, kMaxIndentation);
  rules.define(space_, rules.choice({rules.literal(""), rules.literal(" "),
                                     rules.sequence({rules.literal("\n"), indentation})}));
  rules.define(string_, quoted(json_text(0, kUnbounded)));
  rules.define(number_, unbounded_number(rules));
  rules.define(integer_, unbounded_integer(rules));

  const ExprId comma = rules.sequence({rules.literal(","), space()});
  const ExprId item = value();
  const ExprId items =
      rules.sequence({item, rules.repeat(rules.sequence({comma, item}), 0, kUnbounded), space()});
  const ExprId array =
      rules.sequence({rules.literal("["), space(), rules.optional(items), rules.literal("]")});
  const ExprId one = member(string(), value());
  const ExprId members =
      rules.sequence({one, rules.repeat(rules.sequence({comma, one}), 0, kUnbounded), space()});
  const ExprId braces =
      rules.sequence({rules.literal("{"), space(), rules.optional(members), rules.literal("}")});
  rules.define(object_, braces);
  rules.define(value_, rules.choice({string(), number(), rules.literals({"true", "false", "null"}),
                                     braces, array}));
}

Status JsonRules::count_copied(size_t bytes) {
  copied_ += bytes;
  if (copied_ <= kMaxCopied) return {};
  return error("the schema grows beyond ", kMaxCopied >> 20,
               " MB where $ref, allOf, anyOf or oneOf stand beside other keywords; repeat less "
               "beside them");
}

ExprId JsonRules::json_text(int64_t min, int64_t max) {
  return rules_.repeat(character_, min, max, TextKind::json_string);
}

ExprId JsonRules::string(int64_t min, int64_t max) {
  if (min == 0 && max == kUnbounded) return string();
  return quoted(json_text(min, max));
}

ExprId JsonRules::quoted(ExprId inner) {
  return rules_.sequence({rules_.literal("\""), inner, rules_.literal("\"")});
}

ExprId JsonRules::member(const std::string& key, ExprId value) {
  return member(rules_.literal(json_quoted(key)), value);
}

ExprId JsonRules::member(ExprId key, ExprId value) {
  return rules_.sequence({key, rules_.literal(":"), rules_.optional(rules_.literal(" ")), value});
}

Result<ExprId> JsonRules::other_key(const std::vector<std::string>& keys) {
  // Other keys are spelt without escapes, or a given one could hide behind its escapes.
  const CharSet plain = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, kMaxCodePoint}};
  SLIP_TRY(const ExprId key, other_name(keys, plain, kUnbounded, TextKind::json_string));
  return quoted(key);
}

Result<ExprId> JsonRules::other_name(const std::vector<std::string>& keys,
                                     const CharSet& characters, int64_t longest,
                                     std::optional<TextKind> kind) {
  KeyTree root;
  size_t in_tree = 0;
  for (const std::string& key : keys) {
    if (key.size() > kMaxKeyBytes)
      return error("the name of a property has ", key.size(), " bytes; beside further properties ",
                   "it may have ", kMaxKeyBytes, "; set additionalProperties to false");
    KeyTree* at = &root;
    for (size_t i = 0; i < key.size();) {
      const CodePoint c = decode_valid_utf8(key.data() + i);
      const auto [next, is_new] = at->next.try_emplace(c.value);
      at = &next->second;
      in_tree += is_new;
      i += c.length;
    }
    at->is_key = true;
  }
  if (in_tree > kMaxKeyCharacters)
    return error("the names of properties have ", in_tree, " characters; beside further ",
                 "properties there may be ", kMaxKeyCharacters,
                 "; shorten them or set additionalProperties to false");
  const ExprId rest =
      rules_.repeat(one_character(rules_, characters, Spelling::plain), 0, longest, kind);
  const auto expression = [&](const auto& self, const KeyTree& tree) -> ExprId {
    CharSet others = complement({});
    for (const auto& [character, next] : tree.next)
      others = intersection(others, complement({{character, character}}));
    std::vector<ExprId> ways = {rules_.sequence(
        {one_character(rules_, intersection(others, characters), Spelling::plain), rest})};
    if (!tree.is_key) ways.push_back(rules_.literal(""));
    for (const auto& [character, next] : tree.next)
      if (contains(characters, character))
        ways.push_back(
            rules_.sequence({rules_.literal(spell(character, Spelling::plain)), self(self, next)}));
    return rules_.choice(std::move(ways));
  };
  return expression(expression, root);
}

}  // namespace slip
