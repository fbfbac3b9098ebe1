#include "grammar/rules.h"

#include <algorithm>

namespace slip {

ExprId Rules::add(Expr expr) {
  exprs_.push_back(std::move(expr));
  return ExprId(exprs_.size() - 1);
}

ExprId Rules::sequence(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expr::Kind::sequence, .parts = std::move(parts)});
}

ExprId Rules::choice(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<std::string> texts;
  for (const ExprId part : parts)
    if ((*this)[part].kind == Expr::Kind::literal) texts.push_back((*this)[part].text);
  if (texts.size() > 1) {
    std::erase_if(parts, [this](ExprId part) { return (*this)[part].kind == Expr::Kind::literal; });
    parts.insert(parts.begin(), literals(std::move(texts)));
    if (parts.size() == 1) return parts[0];
  }
  return add({.kind = Expr::Kind::choice, .parts = std::move(parts)});
}

ExprId Rules::literals(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return merged(texts, 0, texts.size(), 0);
}

// The texts [begin, end), which agree before `from`, from there on.
ExprId Rules::merged(std::vector<std::string>& sorted, size_t begin, size_t end, size_t from) {
  if (end - begin == 1) return literal(std::string_view(sorted[begin]).substr(from));
  std::vector<ExprId> parts;
  if (begin < end && sorted[begin].size() == from) {
    parts.push_back(literal(""));
    ++begin;
  }
  while (begin < end) {
    const char byte = sorted[begin][from];
    size_t next = begin + 1;
    while (next < end && sorted[next][from] == byte) ++next;
    // What all of them share; sorted, so the first and the last decide.
    const std::string& first = sorted[begin];
    const std::string& last = sorted[next - 1];
    size_t shared = from + 1;
    while (shared < first.size() && shared < last.size() && first[shared] == last[shared]) ++shared;
    const ExprId head = literal(std::string_view(first).substr(from, shared - from));
    parts.push_back(next - begin == 1 ? literal(std::string_view(first).substr(from))
                                      : sequence({head, merged(sorted, begin, next, shared)}));
    begin = next;
  }
  return add({.kind = Expr::Kind::choice, .parts = std::move(parts)});
}

ExprId Rules::repeat(ExprId part, int64_t min, int64_t max, std::optional<TextKind> kind) {
  const Expr& inner = (*this)[part];
  if (max == 0) return literal("");
  if (min == 1 && max == 1) return part;
  // (x*){m,n} and (x?){m,n}: counting what may be empty would count in many ways.
  if (inner.kind == Expr::Kind::repeat && inner.min == 0) {
    if (inner.max == kUnbounded) return part;
    if (inner.max == 1) return repeat(inner.parts[0], 0, max, inner.text_kind);
  }
  return add(
      {.kind = Expr::Kind::repeat, .parts = {part}, .min = min, .max = max, .text_kind = kind});
}

RuleId Rules::add_rule(std::string name) {
  rules_.push_back({std::move(name)});
  return RuleId(rules_.size() - 1);
}

}  // namespace slip
