#include "grammar/regex.h"

#include <algorithm>

namespace slip {
namespace {

using Kind = RegexNode::Kind;

int64_t add_lengths(int64_t a, int64_t b) {
  return a == kUnbounded || b == kUnbounded ? kUnbounded : a + b;
}

LengthRange lengths_of(const RegexNode& node) {
  switch (node.kind) {
    case Kind::characters: return {1, 1};
    case Kind::begin_anchor:
    case Kind::end_anchor: return {0, 0};
    case Kind::sequence: {
      LengthRange sum{0, 0};
      for (const RegexNode& part : node.parts) {
        const LengthRange one = lengths_of(part);
        sum = {sum.min + one.min, add_lengths(sum.max, one.max)};
      }
      return sum;
    }
    case Kind::choice: {
      LengthRange all = lengths_of(node.parts[0]);
      for (const RegexNode& part : node.parts) {
        const LengthRange one = lengths_of(part);
        const bool unbounded = all.max == kUnbounded || one.max == kUnbounded;
        all = {std::min(all.min, one.min), unbounded ? kUnbounded : std::max(all.max, one.max)};
      }
      return all;
    }
    case Kind::repeat: {
      // Kept far from overflow; nothing asks for lengths beyond.
      constexpr int64_t kLong = int64_t(1) << 40;
      const LengthRange one = lengths_of(node.parts[0]);
      const bool unbounded = one.max != 0 && (one.max == kUnbounded || node.max == kUnbounded);
      return {std::min(kLong, one.min * node.min),
              unbounded ? kUnbounded : std::min(kLong, one.max * std::max<int64_t>(node.max, 0))};
    }
  }
  unreachable("RegexNode::Kind");
}

std::vector<RegexNode> alternatives(const RegexNode& regex) {
  if (regex.kind == Kind::choice) return regex.parts;
  // A group around the whole pattern.
  if (regex.kind == Kind::sequence && regex.parts.size() == 1 &&
      (regex.parts[0].kind == Kind::choice || regex.parts[0].kind == Kind::sequence))
    return alternatives(regex.parts[0]);
  return {regex};
}

// One alternative of the pattern without the anchors at its ends.
struct Anchored {
  RegexNode middle{.kind = Kind::sequence};
  bool at_begin = false;
  bool at_end = false;
};

Anchored split_anchors(const RegexNode& way) {
  Anchored result;
  if (way.kind != Kind::sequence) {
    result.at_begin = way.kind == Kind::begin_anchor;
    result.at_end = way.kind == Kind::end_anchor;
    if (!result.at_begin && !result.at_end) result.middle.parts = {way};
    return result;
  }
  auto first = way.parts.begin();
  auto last = way.parts.end();
  for (; first != last && first->kind == Kind::begin_anchor; ++first) result.at_begin = true;
  for (; first != last && (last - 1)->kind == Kind::end_anchor; --last) result.at_end = true;
  result.middle.parts.assign(first, last);
  return result;
}

class Emitter {
 public:
  Emitter(Rules& rules, Spelling spelling) : rules_(rules), spelling_(spelling) {}

  Result<ExprId> emit(const RegexNode& node) {
    switch (node.kind) {
      case Kind::characters: return emit_characters(node.characters);
      case Kind::sequence: return emit_sequence(node);
      case Kind::choice: {
        std::vector<ExprId> ways;
        for (const RegexNode& part : node.parts) {
          SLIP_TRY(const ExprId way, emit(part));
          ways.push_back(way);
        }
        return rules_.choice(std::move(ways));
      }
      case Kind::repeat: {
        SLIP_TRY(const ExprId part, emit(node.parts[0]));
        return rules_.repeat(part, node.min, node.max, text_kind_of(node));
      }
      case Kind::begin_anchor:
      case Kind::end_anchor:
        return error("regular expression: anchors are supported at the pattern's ends only");
    }
    unreachable("RegexNode::Kind");
  }

  ExprId anything() {
    const RegexNode all{.kind = Kind::characters, .characters = {{0, kMaxCodePoint}}};
    const RegexNode repeat{.kind = Kind::repeat, .parts = {all}};
    return emit(repeat).value();
  }

 private:
  Result<ExprId> emit_characters(const CharSet& set) {
    const bool is_single = set.size() == 1 && set[0].first == set[0].last;
    if (is_single && set[0].first == '<' && spelling_ == Spelling::no_tags)
      return error("a '<' cannot be written here, it could begin a tag");
    if (is_single) return rules_.literal(spell(set[0].first, spelling_));
    return one_character(rules_, set, spelling_);
  }

  // Neighbouring single characters become one text, which alternatives can share.
  Result<ExprId> emit_sequence(const RegexNode& node) {
    std::vector<ExprId> parts;
    std::string text;
    const auto end_text = [&] {
      if (!text.empty()) parts.push_back(rules_.literal(text));
      text.clear();
    };
    for (const RegexNode& part : node.parts) {
      SLIP_TRY(const ExprId id, emit(part));
      if (rules_[id].kind == Expr::Kind::literal) {
        text += rules_[id].text;
        continue;
      }
      end_text();
      parts.push_back(id);
    }
    end_text();
    if (parts.empty()) return rules_.literal("");
    return rules_.sequence(std::move(parts));
  }

  // Whether a loop over one character contains all of the common text; see Expr::text_kind.
  std::optional<TextKind> text_kind_of(const RegexNode& repeat) const {
    const RegexNode& part = repeat.parts[0];
    if (part.kind != Kind::characters || repeat.max != kUnbounded) return std::nullopt;
    const CharSet common =
        normalised({{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x2027}, {0x202A, kMaxCodePoint}});
    if (intersection(part.characters, common) == common) return TextKind::json_string;
    return std::nullopt;
  }

  Rules& rules_;
  Spelling spelling_;
};

}  // namespace

LengthRange regex_lengths(const RegexNode& regex, RegexMeaning meaning) {
  if (meaning == RegexMeaning::whole) return lengths_of(regex);
  LengthRange all = lengths_of(regex);
  for (const RegexNode& way : alternatives(regex)) {
    const Anchored anchored = split_anchors(way);
    if (!anchored.at_begin || !anchored.at_end) all.max = kUnbounded;
  }
  return all;
}

bool regex_may_contain(const RegexNode& regex, RegexMeaning meaning, uint32_t character) {
  if (regex.kind == Kind::characters) return contains(normalised(regex.characters), character);
  const auto may = [&](const RegexNode& node) {
    return regex_may_contain(node, RegexMeaning::whole, character);
  };
  if (meaning == RegexMeaning::whole)
    return std::any_of(regex.parts.begin(), regex.parts.end(), may);
  const std::vector<RegexNode> ways = alternatives(regex);
  return std::any_of(ways.begin(), ways.end(), [&](const RegexNode& way) {
    const Anchored anchored = split_anchors(way);
    return !anchored.at_begin || !anchored.at_end || may(anchored.middle);
  });
}

Result<ExprId> regex_expression(Rules& rules, const RegexNode& regex, RegexMeaning meaning,
                                Spelling spelling) {
  Emitter emitter(rules, spelling);
  std::vector<ExprId> ways;
  for (const RegexNode& way : alternatives(regex)) {
    const Anchored anchored = split_anchors(way);
    SLIP_TRY(const ExprId middle, emitter.emit(anchored.middle));
    std::vector<ExprId> parts;
    const bool is_part = meaning == RegexMeaning::part;
    if (is_part && !anchored.at_begin) parts.push_back(emitter.anything());
    parts.push_back(middle);
    if (is_part && !anchored.at_end) parts.push_back(emitter.anything());
    ways.push_back(rules.sequence(std::move(parts)));
  }
  return rules.choice(std::move(ways));
}

}  // namespace slip
