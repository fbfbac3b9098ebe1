// Tokens -> Ast, by recursive descent in the order of Jinja2's own parser. parse_*() functions for
// expressions are in jinja_parser_expr.cc, for blocks in jinja_parser.cc.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace slip::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), ast_(new Ast) {}

  std::unique_ptr<const Ast> run();  // throws Failure with the line

 private:
  // Brackets and blocks inside each other; the parser itself is recursive.
  static constexpr int kMaxNesting = 100;

  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) parser_.fail_here("nested too deeply");
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token next();
  bool at_symbol(std::string_view symbol) const;
  bool at_name(std::string_view name) const;
  bool skip_symbol(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  std::string expect_name();
  void expect_block_end();
  [[noreturn]] void fail_here(const std::string& message) const;
  [[noreturn]] void fail_unexpected(const std::string& wanted) const;

  template <class Node>
  const Expr* make(int line, Node node) {
    return &ast_->exprs.emplace_back(Expr{line, std::move(node)});
  }
  template <class Node>
  void append(Body& body, int line, Node node) {
    body.push_back(&ast_->statements.emplace_back(Statement{line, std::move(node)}));
  }

  // Up to and including one of the tags in `ends`, whose name is returned; `opener` is for errors.
  std::string parse_body(Body& body, std::initializer_list<std::string_view> ends,
                         std::string_view opener, int opener_line);
  void parse_block(Body& body);
  void parse_if(Body& body, int line);
  void parse_for(Body& body, int line);
  void parse_set(Body& body, int line);
  void parse_macro(Body& body, int line);
  void parse_with(Body& body, int line);
  void parse_filter_block(Body& body, int line);
  Target parse_target();
  Target parse_single_target();

  const Expr* parse_expression(bool with_condition = true);
  const Expr* parse_or();
  const Expr* parse_and();
  const Expr* parse_not();
  const Expr* parse_comparison();
  const Expr* parse_sum();
  const Expr* parse_concatenation();
  const Expr* parse_product();
  const Expr* parse_power();
  const Expr* parse_unary(bool with_filter = true);
  const Expr* parse_primary();
  const Expr* parse_string();
  const Expr* parse_list();
  const Expr* parse_dict();
  const Expr* parse_postfix(const Expr* expr);
  const Expr* parse_subscript(const Expr* object);
  const Expr* parse_filters_and_tests(const Expr* expr);
  const Expr* parse_test(const Expr* input);
  FilterCall parse_filter_call();
  std::vector<FilterCall> parse_filter_chain();
  // One expression, or several separated by commas, which make a tuple.
  const Expr* parse_tuple(bool with_condition = true, bool in_parentheses = false);
  ArgumentList parse_arguments();
  std::string parse_dotted_name();

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // for blocks around the current one, within the current macro
  std::unique_ptr<Ast> ast_;
};

}  // namespace slip::jinja
