#include "grammar/rule_checks.h"

#include <algorithm>

namespace slip {
namespace {

bool is_nullable(const Expr& expr, const std::vector<bool>& exprs, const std::vector<bool>& rules) {
  const auto part = [&](ExprId id) { return bool(exprs[size_t(id)]); };
  switch (expr.kind) {
    case Expr::Kind::bytes:
    case Expr::Kind::tag: return false;
    case Expr::Kind::text_without: return expr.min == 0;
    case Expr::Kind::literal: return expr.text.empty();
    case Expr::Kind::sequence: return std::all_of(expr.parts.begin(), expr.parts.end(), part);
    case Expr::Kind::choice: return std::any_of(expr.parts.begin(), expr.parts.end(), part);
    case Expr::Kind::repeat: return expr.min == 0 || part(expr.parts[0]);
    case Expr::Kind::call: return rules[size_t(expr.rule)];
  }
  unreachable("Expr::Kind");
}

// [expressions]. Parts come before what they are part of, so one sweep suffices.
std::vector<bool> find_nullable_exprs(const Rules& rules, const std::vector<bool>& nullable_rules) {
  std::vector<bool> nullable(rules.expr_count());
  for (size_t i = 0; i < nullable.size(); ++i)
    nullable[i] = is_nullable(rules[ExprId(i)], nullable, nullable_rules);
  return nullable;
}

// The rules that `caller` may call before it has read a byte. `seen_by`: [expressions], scratch.
std::vector<RuleId> first_calls(const Rules& rules, RuleId caller,
                                const std::vector<bool>& nullable, std::vector<RuleId>& seen_by) {
  std::vector<RuleId> calls;
  std::vector<ExprId> open = {rules.body(caller)};
  while (!open.empty()) {
    const ExprId at = open.back();
    open.pop_back();
    if (seen_by[size_t(at)] == caller) continue;
    seen_by[size_t(at)] = caller;
    const Expr& expr = rules[at];
    if (expr.kind == Expr::Kind::call) calls.push_back(expr.rule);
    for (const ExprId part : expr.parts) {
      open.push_back(part);
      if (expr.kind == Expr::Kind::sequence && !nullable[size_t(part)]) break;
    }
  }
  return calls;
}

}  // namespace

std::vector<bool> find_nullable_rules(const Rules& rules) {
  std::vector<bool> nullable(rules.rule_count());
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<bool> exprs = find_nullable_exprs(rules, nullable);
    for (size_t i = 0; i < nullable.size(); ++i) {
      const bool now = exprs[size_t(rules.body(RuleId(i)))];
      changed |= now != nullable[i];
      nullable[i] = now;
    }
  }
  return nullable;
}

Status check_recursion(const Rules& rules, const std::vector<bool>& nullable) {
  const std::vector<bool> exprs = find_nullable_exprs(rules, nullable);
  std::vector<std::vector<RuleId>> calls(rules.rule_count());
  std::vector<RuleId> seen_by(rules.expr_count(), RuleId(-1));
  for (size_t i = 0; i < calls.size(); ++i)
    calls[i] = first_calls(rules, RuleId(i), exprs, seen_by);

  enum class Mark : uint8_t { unseen, open, done };
  std::vector<Mark> marks(rules.rule_count(), Mark::unseen);
  for (size_t root = 0; root < marks.size(); ++root) {
    std::vector<size_t> path = {root};
    while (!path.empty()) {
      const size_t at = path.back();
      if (marks[at] == Mark::done) {
        path.pop_back();
        continue;
      }
      if (marks[at] == Mark::open) {  // all that it calls is done
        marks[at] = Mark::done;
        path.pop_back();
        continue;
      }
      marks[at] = Mark::open;
      for (const RuleId called : calls[at]) {
        if (marks[size_t(called)] == Mark::open)
          return error(rules.name(called), " refers to itself with nothing in between");
        if (marks[size_t(called)] == Mark::unseen) path.push_back(size_t(called));
      }
    }
  }
  return {};
}

Status check_repetitions(const Rules& rules, const std::vector<bool>& nullable) {
  const std::vector<bool> exprs = find_nullable_exprs(rules, nullable);
  for (size_t i = 0; i < rules.expr_count(); ++i) {
    const Expr& expr = rules[ExprId(i)];
    if (expr.kind != Expr::Kind::repeat || !exprs[size_t(expr.parts[0])]) continue;
    const bool counts = expr.min > 1 || expr.max > 1;  // kUnbounded is negative
    if (counts)
      return error("a repetition counts something that may be empty: {", expr.min, ",",
                   expr.max == kUnbounded ? std::string() : std::to_string(expr.max), "}");
  }
  return {};
}

}  // namespace slip
