// Expressions, from the loosest binding operator to the tightest.
#include <array>

#include "text/jinja_builtins.h"
#include "text/jinja_parser.h"
#include "text/jinja_text.h"

namespace slip::jinja {

const Expr* Parser::parse_expression(bool with_condition) {
  const Nesting nesting(*this);
  const int line = current().line;
  const Expr* expr = parse_or();
  while (with_condition && skip_name("if")) {
    const Expr* condition = parse_or();
    const Expr* otherwise = skip_name("else") ? parse_expression() : nullptr;
    expr = make(line, Conditional{expr, condition, otherwise});
  }
  return expr;
}

const Expr* Parser::parse_or() {
  const int line = current().line;
  const Expr* left = parse_and();
  while (skip_name("or")) left = make(line, Logical{false, left, parse_and()});
  return left;
}

const Expr* Parser::parse_and() {
  const int line = current().line;
  const Expr* left = parse_not();
  while (skip_name("and")) left = make(line, Logical{true, left, parse_not()});
  return left;
}

const Expr* Parser::parse_not() {
  const int line = current().line;
  if (!at_name("not")) return parse_comparison();
  const Nesting nesting(*this);
  next();
  return make(line, Unary{UnaryOp::logical_not, parse_not()});
}

const Expr* Parser::parse_comparison() {
  static constexpr std::array<std::pair<std::string_view, CompareOp>, 6> kSymbols = {{
      {"==", CompareOp::equal},
      {"!=", CompareOp::not_equal},
      {"<", CompareOp::less},
      {"<=", CompareOp::less_equal},
      {">", CompareOp::greater},
      {">=", CompareOp::greater_equal},
  }};
  const int line = current().line;
  Comparison node{.first = parse_sum(), .rest = {}};
  const auto parse_one = [&] {
    for (const auto& [symbol, op] : kSymbols) {
      if (!skip_symbol(symbol)) continue;
      node.rest.emplace_back(op, parse_sum());
      return true;
    }
    if (skip_name("in")) {
      node.rest.emplace_back(CompareOp::in, parse_sum());
      return true;
    }
    if (at_name("not") && look().type == TokenType::name && look().text == "in") {
      next();
      next();
      node.rest.emplace_back(CompareOp::not_in, parse_sum());
      return true;
    }
    return false;
  };
  while (parse_one()) continue;
  return node.rest.empty() ? node.first : make(line, std::move(node));
}

const Expr* Parser::parse_sum() {
  const Expr* left = parse_concatenation();
  while (at_symbol("+") || at_symbol("-")) {
    const Token op = next();
    left = make(op.line, Binary{op.text == "+" ? BinaryOp::add : BinaryOp::subtract, left,
                                parse_concatenation()});
  }
  return left;
}

const Expr* Parser::parse_concatenation() {
  const int line = current().line;
  Concatenation node{{parse_product()}};
  while (skip_symbol("~")) node.parts.push_back(parse_product());
  return node.parts.size() == 1 ? node.parts[0] : make(line, std::move(node));
}

const Expr* Parser::parse_product() {
  static constexpr std::array<std::pair<std::string_view, BinaryOp>, 4> kSymbols = {{
      {"*", BinaryOp::multiply},
      {"/", BinaryOp::divide},
      {"//", BinaryOp::floor_divide},
      {"%", BinaryOp::modulo},
  }};
  const Expr* left = parse_power();
  const auto parse_one = [&] {
    for (const auto& [symbol, op] : kSymbols) {
      const int line = current().line;
      if (!skip_symbol(symbol)) continue;
      left = make(line, Binary{op, left, parse_power()});
      return true;
    }
    return false;
  };
  while (parse_one()) continue;
  return left;
}

const Expr* Parser::parse_power() {
  const Expr* left = parse_unary();
  while (at_symbol("**")) {
    const int line = next().line;
    left = make(line, Binary{BinaryOp::power, left, parse_unary()});
  }
  return left;
}

const Expr* Parser::parse_unary(bool with_filter) {
  const Nesting nesting(*this);
  const int line = current().line;
  const Expr* expr = nullptr;
  if (skip_symbol("-")) {
    expr = make(line, Unary{UnaryOp::negate, parse_unary(false)});
  } else if (skip_symbol("+")) {
    expr = make(line, Unary{UnaryOp::plus, parse_unary(false)});
  } else {
    expr = parse_primary();
  }
  expr = parse_postfix(expr);
  return with_filter ? parse_filters_and_tests(expr) : expr;
}

const Expr* Parser::parse_primary() {
  const int line = current().line;
  switch (current().type) {
    case TokenType::name: {
      const std::string name = next().text;
      if (name == "true" || name == "True") return make(line, Constant{true});
      if (name == "false" || name == "False") return make(line, Constant{false});
      if (name == "none" || name == "None") return make(line, Constant{None{}});
      return make(line, Name{name});
    }
    case TokenType::string: return parse_string();
    case TokenType::integer: return make(line, Constant{next().integer});
    case TokenType::real: return make(line, Constant{next().real});
    default: break;
  }
  if (skip_symbol("(")) {
    const Expr* inner = parse_tuple(true, true);
    expect_symbol(")");
    return inner;
  }
  if (at_symbol("[")) return parse_list();
  if (at_symbol("{")) return parse_dict();
  fail_unexpected("an expression");
}

const Expr* Parser::parse_string() {
  const int line = current().line;
  StringConstant node;
  while (current().type == TokenType::string) node.text += next().text;
  return make(line, std::move(node));
}

const Expr* Parser::parse_list() {
  const int line = next().line;
  Sequence node{.items = {}, .tuple = false};
  while (!at_symbol("]")) {
    if (!node.items.empty()) expect_symbol(",");
    if (at_symbol("]")) break;
    node.items.push_back(parse_expression());
  }
  expect_symbol("]");
  return make(line, std::move(node));
}

const Expr* Parser::parse_dict() {
  const int line = next().line;
  DictLiteral node;
  while (!at_symbol("}")) {
    if (!node.entries.empty()) expect_symbol(",");
    if (at_symbol("}")) break;
    const Expr* key = parse_expression();
    expect_symbol(":");
    node.entries.emplace_back(key, parse_expression());
  }
  expect_symbol("}");
  return make(line, std::move(node));
}

const Expr* Parser::parse_tuple(bool with_condition, bool in_parentheses) {
  const int line = current().line;
  const auto at_end = [&] {
    return current().type == TokenType::print_end || current().type == TokenType::block_end ||
           at_symbol(")") || at_name("recursive");
  };
  Sequence node{.items = {}, .tuple = true};
  bool has_comma = false;
  while (!at_end()) {
    node.items.push_back(parse_expression(with_condition));
    if (!skip_symbol(",")) break;
    has_comma = true;
  }
  if (has_comma) return make(line, std::move(node));
  if (!node.items.empty()) return node.items[0];
  if (!in_parentheses) fail_unexpected("an expression");
  return make(line, std::move(node));
}

const Expr* Parser::parse_postfix(const Expr* expr) {
  while (true) {
    const int line = current().line;
    if (skip_symbol(".")) {
      if (current().type == TokenType::integer) {
        expr = make(line, Subscript{expr, make(line, Constant{next().integer})});
      } else {
        expr = make(line, Attribute{expr, expect_name()});
      }
    } else if (at_symbol("[")) {
      expr = parse_subscript(expr);
    } else if (at_symbol("(")) {
      expr = make(line, Call{expr, parse_arguments()});
    } else {
      return expr;
    }
  }
}

const Expr* Parser::parse_subscript(const Expr* object) {
  const int line = next().line;
  const auto parse_bound = [&]() -> const Expr* {
    return at_symbol(":") || at_symbol("]") ? nullptr : parse_expression();
  };
  const Expr* first = parse_bound();
  if (!skip_symbol(":")) {
    if (!first) fail_unexpected("an expression");
    expect_symbol("]");
    return make(line, Subscript{object, first});
  }
  Slice node{.object = object, .start = first, .stop = parse_bound(), .step = nullptr};
  if (skip_symbol(":")) node.step = parse_bound();
  expect_symbol("]");
  return make(line, node);
}

const Expr* Parser::parse_filters_and_tests(const Expr* expr) {
  while (true) {
    const int line = current().line;
    if (skip_symbol("|")) {
      expr = make(line, Filtered{expr, parse_filter_call()});
    } else if (skip_name("is")) {
      expr = parse_test(expr);
    } else if (at_symbol("(")) {
      expr = make(line, Call{expr, parse_arguments()});
    } else {
      return expr;
    }
  }
}

const Expr* Parser::parse_test(const Expr* input) {
  const int line = current().line;
  const bool negated = skip_name("not");
  const std::string name = parse_dotted_name();
  Tested node{
      .input = input, .name = name, .test = find_test(name), .arguments = {}, .negated = negated};
  const bool takes_argument = current().type == TokenType::name ||
                              current().type == TokenType::string ||
                              current().type == TokenType::integer ||
                              current().type == TokenType::real || at_symbol("[") || at_symbol("{");
  if (at_symbol("(")) {
    node.arguments = parse_arguments();
  } else if (at_name("is")) {
    fail_here("tests cannot be chained with 'is'");
  } else if (takes_argument && !at_name("else") && !at_name("or") && !at_name("and")) {
    node.arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  return make(line, std::move(node));
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_name();
  while (skip_symbol(".")) name += "." + expect_name();
  return name;
}

FilterCall Parser::parse_filter_call() {
  const std::string name = parse_dotted_name();
  FilterCall call{.name = name, .filter = find_filter(name), .arguments = {}};
  if (at_symbol("(")) call.arguments = parse_arguments();
  return call;
}

std::vector<FilterCall> Parser::parse_filter_chain() {
  std::vector<FilterCall> calls;
  while (skip_symbol("|")) calls.push_back(parse_filter_call());
  return calls;
}

ArgumentList Parser::parse_arguments() {
  const Nesting nesting(*this);
  expect_symbol("(");
  ArgumentList arguments;
  bool first = true;
  while (!at_symbol(")")) {
    if (!first) expect_symbol(",");
    first = false;
    if (at_symbol(")")) break;
    if (at_symbol("*") || at_symbol("**")) fail_here("* and ** in calls are not supported");
    if (current().type == TokenType::name && look().type == TokenType::symbol &&
        look().text == "=") {
      std::string name = next().text;
      next();
      arguments.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!arguments.named.empty()) fail_here("a positional argument follows a named one");
      arguments.positional.push_back(parse_expression());
    }
  }
  expect_symbol(")");
  return arguments;
}

}  // namespace slip::jinja
