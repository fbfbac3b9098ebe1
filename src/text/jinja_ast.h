// The parsed template. The Ast owns all nodes in flat stores and nodes point at each other, so that
// a long chain of operators is freed without recursion.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja_value.h"

namespace slip::jinja {

struct Expr;
struct Statement;
using Body = std::vector<const Statement*>;

struct ArgumentList {
  std::vector<const Expr*> positional;
  std::vector<std::pair<std::string, const Expr*>> named;
};

struct Constant {
  Value value;  // not text, which would have to be borrowed from somewhere
};
struct StringConstant {
  std::string text;
};
struct Name {
  std::string name;
};
struct Sequence {
  std::vector<const Expr*> items;
  bool tuple;
};
struct DictLiteral {
  std::vector<std::pair<const Expr*, const Expr*>> entries;
};
enum class UnaryOp { negate, plus, logical_not };
struct Unary {
  UnaryOp op;
  const Expr* operand;
};
enum class BinaryOp { add, subtract, multiply, divide, floor_divide, modulo, power };
struct Binary {
  BinaryOp op;
  const Expr* left;
  const Expr* right;
};
struct Logical {
  bool is_and;
  const Expr* left;
  const Expr* right;
};
enum class CompareOp { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };
struct Comparison {
  const Expr* first;
  std::vector<std::pair<CompareOp, const Expr*>> rest;  // a < b < c
};
struct Concatenation {
  std::vector<const Expr*> parts;
};
struct Conditional {
  const Expr* value;
  const Expr* condition;
  const Expr* otherwise;  // may be null
};
struct Attribute {
  const Expr* object;
  std::string name;
};
struct Subscript {
  const Expr* object;
  const Expr* key;
};
struct Slice {
  const Expr* object;
  const Expr* start;  // each may be null
  const Expr* stop;
  const Expr* step;
};
struct Call {
  const Expr* callee;
  ArgumentList arguments;
};
struct FilterCall {
  std::string name;
  Builtin filter;  // null: unknown, an error only if it is reached, as in Jinja2
  ArgumentList arguments;
};
struct Filtered {
  const Expr* input;
  FilterCall call;
};
struct Tested {
  const Expr* input;
  std::string name;
  Builtin test;  // null: unknown
  ArgumentList arguments;
  bool negated;
};

struct Expr {
  int line;
  std::variant<Constant, StringConstant, Name, Sequence, DictLiteral, Unary, Binary, Logical,
               Comparison, Concatenation, Conditional, Attribute, Subscript, Slice, Call, Filtered,
               Tested>
      node;
};

// What a value is assigned to: name, name.attribute, or several of them in a tuple.
struct Target {
  std::string name;
  std::string attribute;  // empty: the name itself
  std::vector<Target> items;
  bool tuple = false;
};

struct Data {
  std::string text;
};
struct Print {
  const Expr* value;
};
struct If {
  std::vector<std::pair<const Expr*, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  const Expr* items;
  const Expr* condition;  // may be null
  Body body;
  Body otherwise;
};
struct Set {
  Target target;
  const Expr* value;
};
struct SetBlock {
  Target target;
  std::vector<FilterCall> filters;
  Body body;
};
struct MacroDefinition {
  std::string name;
  std::vector<std::pair<std::string, const Expr*>> parameters;  // with default, or null
  Body body;
};
struct FilterBlock {
  std::vector<FilterCall> filters;
  Body body;
};
// {% with a = 1 %}, and with no assignments any block that only has a scope of its own.
struct With {
  std::vector<std::pair<Target, const Expr*>> assignments;
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  int line;
  std::variant<Data, Print, If, For, Set, SetBlock, MacroDefinition, FilterBlock, With, Break,
               Continue>
      node;
};

struct Ast {
  std::deque<Expr> exprs;
  std::deque<Statement> statements;
  Body body;
};

}  // namespace slip::jinja
