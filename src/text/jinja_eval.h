// Runs a parsed template. Statements are in jinja_eval.cc, expressions in jinja_eval_expr.cc.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace slip::jinja {

// Variables of the template, a loop round, a macro call or a captured block.
struct Scope : HeapObject {
  explicit Scope(Scope* p) : parent(p) {}
  Scope* parent;
  std::vector<std::pair<std::string_view, Value>> variables;
  bool seen_by_macro = false;  // which may be called after what the scope is for has ended
};

struct Macro : HeapObject {
  Macro(const MacroDefinition& d, Scope& s) : definition(d), scope(s) {}
  const MacroDefinition& definition;
  Scope& scope;  // where it was defined; it sees those variables, not its caller's
};

class Evaluator {
 public:
  Evaluator(Heap& heap, std::time_t now) : heap_(heap), now_(now) {}

  std::string run(const Body& body, const JsonObject& context);
  int line() const { return line_; }

 private:
  enum class Flow { normal, leave_loop, next_round };

  Flow execute(const Body& body, Scope& scope);
  Flow execute(const Data& node, Scope& scope);
  Flow execute(const Print& node, Scope& scope);
  Flow execute(const If& node, Scope& scope);
  Flow execute(const For& node, Scope& scope);
  Flow execute(const Set& node, Scope& scope);
  Flow execute(const SetBlock& node, Scope& scope);
  Flow execute(const MacroDefinition& node, Scope& scope);
  Flow execute(const FilterBlock& node, Scope& scope);
  Flow execute(const With& node, Scope& scope);
  Flow execute(const Break& node, Scope& scope);
  Flow execute(const Continue& node, Scope& scope);

  void select_one_by_one(Loop& loop, const For& node, Scope& scope);
  void assign(const Target& target, const Value& value, Scope& scope);
  void set_variable(Scope& scope, std::string_view name, const Value& value);
  Value find_variable(std::string_view name, Scope& scope);
  void emit(std::string_view text);
  // The text that a body prints, in a scope of its own.
  Value capture(const Body& body, Scope& scope, Flow& flow);
  // The same of a block with filters.
  template <class Block>
  Value capture_filtered(const Block& block, Scope& scope, Flow& flow);

  Value evaluate(const Expr& expr, Scope& scope);
  Value evaluate(const Constant& node, Scope& scope);
  Value evaluate(const StringConstant& node, Scope& scope);
  Value evaluate(const Name& node, Scope& scope);
  Value evaluate(const Sequence& node, Scope& scope);
  Value evaluate(const DictLiteral& node, Scope& scope);
  Value evaluate(const Unary& node, Scope& scope);
  Value evaluate(const Binary& node, Scope& scope);
  Value evaluate(const Logical& node, Scope& scope);
  Value evaluate(const Comparison& node, Scope& scope);
  Value evaluate(const Concatenation& node, Scope& scope);
  Value evaluate(const Conditional& node, Scope& scope);
  Value evaluate(const Attribute& node, Scope& scope);
  Value evaluate(const Subscript& node, Scope& scope);
  Value evaluate(const Slice& node, Scope& scope);
  Value evaluate(const Call& node, Scope& scope);
  Value evaluate(const Filtered& node, Scope& scope);
  Value evaluate(const Tested& node, Scope& scope);

  Args evaluate_arguments(const ArgumentList& list, Scope& scope);
  Value apply_filter(const FilterCall& call, const Value& input, Scope& scope);
  Value call_macro(const Macro& macro, const Args& args);

  Heap& heap_;
  std::time_t now_;
  std::string* out_ = nullptr;
  int line_ = 0;
};

}  // namespace slip::jinja
