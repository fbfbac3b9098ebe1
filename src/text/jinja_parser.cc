#include "text/jinja_parser.h"

#include <algorithm>

#include "text/jinja_text.h"

namespace slip::jinja {

Token Parser::next() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::at_symbol(std::string_view symbol) const {
  return current().type == TokenType::symbol && current().text == symbol;
}

bool Parser::at_name(std::string_view name) const {
  return current().type == TokenType::name && current().text == name;
}

bool Parser::skip_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  next();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

void Parser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) fail_unexpected(cat("'", symbol, "'"));
}

std::string Parser::expect_name() {
  if (current().type != TokenType::name) fail_unexpected("a name");
  return next().text;
}

void Parser::expect_block_end() {
  if (current().type != TokenType::block_end) fail_unexpected("'%}'");
  next();
}

void Parser::fail_here(const std::string& message) const {
  throw Failure{.message = message, .line = current().line};
}

void Parser::fail_unexpected(const std::string& wanted) const {
  const Token& token = current();
  std::string found = cat("'", token.text, "'");
  if (token.type == TokenType::end) found = "the end of the template";
  if (token.type == TokenType::string) found = "a string";
  fail_here(cat("expected ", wanted, ", found ", found));
}

std::unique_ptr<const Ast> Parser::run() {
  parse_body(ast_->body, {}, "", 0);
  return std::move(ast_);
}

std::string Parser::parse_body(Body& body, std::initializer_list<std::string_view> ends,
                               std::string_view opener, int opener_line) {
  const Nesting nesting(*this);
  while (true) {
    const int line = current().line;
    switch (current().type) {
      case TokenType::data: append(body, line, Data{next().text}); break;
      case TokenType::print_begin:
        next();
        append(body, line, Print{parse_tuple()});
        if (current().type != TokenType::print_end) fail_unexpected("'}}'");
        next();
        break;
      case TokenType::block_begin:
        next();
        if (current().type != TokenType::name) fail_unexpected("a tag name");
        if (std::find(ends.begin(), ends.end(), current().text) != ends.end()) return next().text;
        parse_block(body);
        break;
      default:
        if (opener.empty()) return "";
        fail_here(cat("{% ", opener, " %} of line ", opener_line, " is not closed"));
    }
  }
}

void Parser::parse_block(Body& body) {
  const int line = current().line;
  const std::string tag = next().text;
  if (tag == "if") return parse_if(body, line);
  if (tag == "for") return parse_for(body, line);
  if (tag == "set") return parse_set(body, line);
  if (tag == "macro") return parse_macro(body, line);
  if (tag == "with") return parse_with(body, line);
  if (tag == "filter") return parse_filter_block(body, line);
  if (tag == "generation") {
    // Hugging Face marks the assistant's tokens with it; the text is the same without.
    expect_block_end();
    With block;
    parse_body(block.body, {"endgeneration"}, tag, line);
    append(body, line, std::move(block));
    return expect_block_end();
  }
  if (tag == "break" || tag == "continue") {
    if (loops_ == 0) fail_here(cat("{% ", tag, " %} outside of a loop"));
    tag == "break" ? append(body, line, Break{}) : append(body, line, Continue{});
    return expect_block_end();
  }
  throw Failure{.message = cat("unknown or unsupported tag '", tag, "'"), .line = line};
}

void Parser::parse_if(Body& body, int line) {
  If node;
  std::string tag = "if";
  while (tag == "if" || tag == "elif") {
    const Expr* condition = parse_tuple(false);
    expect_block_end();
    Body branch;
    tag = parse_body(branch, {"elif", "else", "endif"}, "if", line);
    node.branches.emplace_back(condition, std::move(branch));
  }
  if (tag == "else") {
    expect_block_end();
    parse_body(node.otherwise, {"endif"}, "if", line);
  }
  expect_block_end();
  append(body, line, std::move(node));
}

void Parser::parse_for(Body& body, int line) {
  For node{.target = parse_target(),
           .items = nullptr,
           .condition = nullptr,
           .body = {},
           .otherwise = {}};
  if (!skip_name("in")) fail_unexpected("'in'");
  node.items = parse_tuple(false);
  if (skip_name("if")) node.condition = parse_expression();
  if (at_name("recursive")) fail_here("recursive loops are not supported");
  expect_block_end();
  ++loops_;
  const std::string tag = parse_body(node.body, {"endfor", "else"}, "for", line);
  --loops_;
  if (tag == "else") {
    expect_block_end();
    parse_body(node.otherwise, {"endfor"}, "for", line);
  }
  expect_block_end();
  append(body, line, std::move(node));
}

void Parser::parse_set(Body& body, int line) {
  Target target = parse_target();
  if (skip_symbol("=")) {
    append(body, line, Set{std::move(target), parse_tuple()});
    return expect_block_end();
  }
  SetBlock node{.target = std::move(target), .filters = {}, .body = {}};
  if (at_symbol("|")) node.filters = parse_filter_chain();
  expect_block_end();
  parse_body(node.body, {"endset"}, "set", line);
  expect_block_end();
  append(body, line, std::move(node));
}

void Parser::parse_macro(Body& body, int line) {
  MacroDefinition node{.name = expect_name(), .parameters = {}, .body = {}};
  expect_symbol("(");
  while (!at_symbol(")")) {
    if (!node.parameters.empty()) expect_symbol(",");
    if (at_symbol(")")) break;
    const std::string name = expect_name();
    const Expr* default_value = skip_symbol("=") ? parse_expression() : nullptr;
    if (!default_value && !node.parameters.empty() && node.parameters.back().second)
      fail_here("a parameter without default follows one with a default");
    node.parameters.emplace_back(name, default_value);
  }
  expect_symbol(")");
  expect_block_end();
  const int outer_loops = std::exchange(loops_, 0);
  parse_body(node.body, {"endmacro"}, "macro", line);
  loops_ = outer_loops;
  expect_block_end();
  append(body, line, std::move(node));
}

void Parser::parse_with(Body& body, int line) {
  With node;
  while (current().type != TokenType::block_end) {
    if (!node.assignments.empty()) expect_symbol(",");
    Target target = parse_single_target();
    expect_symbol("=");
    node.assignments.emplace_back(std::move(target), parse_expression());
  }
  expect_block_end();
  parse_body(node.body, {"endwith"}, "with", line);
  expect_block_end();
  append(body, line, std::move(node));
}

void Parser::parse_filter_block(Body& body, int line) {
  FilterBlock node;
  node.filters.push_back(parse_filter_call());
  if (at_symbol("|"))
    for (FilterCall& call : parse_filter_chain()) node.filters.push_back(std::move(call));
  expect_block_end();
  parse_body(node.body, {"endfilter"}, "filter", line);
  expect_block_end();
  append(body, line, std::move(node));
}

Target Parser::parse_target() {
  Target first = parse_single_target();
  if (!at_symbol(",")) return first;
  Target tuple{.name = "", .attribute = "", .items = {}, .tuple = true};
  tuple.items.push_back(std::move(first));
  while (skip_symbol(",")) {
    if (current().type != TokenType::name && !at_symbol("(")) break;
    if (at_name("in")) break;
    tuple.items.push_back(parse_single_target());
  }
  return tuple;
}

Target Parser::parse_single_target() {
  const Nesting nesting(*this);
  if (skip_symbol("(")) {
    Target inner = parse_target();
    expect_symbol(")");
    return inner;
  }
  static constexpr std::string_view kReserved[] = {"true", "false", "none",
                                                   "True", "False", "None"};
  Target target{.name = expect_name(), .attribute = "", .items = {}};
  if (std::find(std::begin(kReserved), std::end(kReserved), target.name) != std::end(kReserved))
    fail_here(cat("cannot assign to '", target.name, "'"));
  if (skip_symbol(".")) target.attribute = expect_name();
  return target;
}

}  // namespace slip::jinja
