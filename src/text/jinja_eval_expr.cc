#include "text/jinja_builtins.h"
#include "text/jinja_eval.h"
#include "text/jinja_ops.h"

namespace slip::jinja {

Value Evaluator::evaluate(const Expr& expr, Scope& scope) {
  const Heap::Descent descent(heap_);
  heap_.step();
  line_ = expr.line;
  return std::visit([&](const auto& node) { return evaluate(node, scope); }, expr.node);
}

Value Evaluator::evaluate(const Constant& node, Scope&) { return node.value; }

Value Evaluator::evaluate(const StringConstant& node, Scope&) { return Text{node.text}; }

Value Evaluator::evaluate(const Name& node, Scope& scope) {
  return find_variable(node.name, scope);
}

Value Evaluator::evaluate(const Sequence& node, Scope& scope) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const Expr* item : node.items) items.push_back(evaluate(*item, scope));
  return make_list(heap_, std::move(items), node.tuple ? ListType::tuple : ListType::list);
}

Value Evaluator::evaluate(const DictLiteral& node, Scope& scope) {
  Dict* dict = heap_.make<Dict>();
  for (const auto& [key, value] : node.entries) {
    const Value evaluated_key = evaluate(*key, scope);
    dict_set(heap_, *dict, evaluated_key, evaluate(*value, scope));
  }
  return static_cast<const Dict*>(dict);
}

Value Evaluator::evaluate(const Unary& node, Scope& scope) {
  return apply_unary(node.op, evaluate(*node.operand, scope));
}

Value Evaluator::evaluate(const Binary& node, Scope& scope) {
  const int line = line_;
  const Value left = evaluate(*node.left, scope);
  const Value right = evaluate(*node.right, scope);
  line_ = line;
  return apply_binary(heap_, node.op, left, right);
}

Value Evaluator::evaluate(const Logical& node, Scope& scope) {
  const Value left = evaluate(*node.left, scope);
  return truthy(left) == node.is_and ? evaluate(*node.right, scope) : left;
}

Value Evaluator::evaluate(const Comparison& node, Scope& scope) {
  Value left = evaluate(*node.first, scope);
  for (const auto& [op, operand] : node.rest) {
    const Value right = evaluate(*operand, scope);
    if (!apply_comparison(heap_, op, left, right)) return false;
    left = right;
  }
  return true;
}

Value Evaluator::evaluate(const Concatenation& node, Scope& scope) {
  std::string out;
  for (const Expr* part : node.parts) {
    const std::string_view text = to_text(heap_, evaluate(*part, scope));
    heap_.charge_bytes(text.size());
    out += text;
  }
  return make_text(heap_, std::move(out));
}

Value Evaluator::evaluate(const Conditional& node, Scope& scope) {
  if (truthy(evaluate(*node.condition, scope))) return evaluate(*node.value, scope);
  if (node.otherwise) return evaluate(*node.otherwise, scope);
  return Undefined{.name = "the inline if-expression evaluated to false and has no else"};
}

Value Evaluator::evaluate(const Attribute& node, Scope& scope) {
  return get_attribute(heap_, evaluate(*node.object, scope), node.name);
}

Value Evaluator::evaluate(const Subscript& node, Scope& scope) {
  const Value object = evaluate(*node.object, scope);
  return get_item(heap_, object, evaluate(*node.key, scope));
}

Value Evaluator::evaluate(const Slice& node, Scope& scope) {
  const Value object = evaluate(*node.object, scope);
  const auto bound = [&](const Expr* expr) {
    return expr ? evaluate(*expr, scope) : Value(None{});
  };
  const Value start = bound(node.start);
  const Value stop = bound(node.stop);
  return get_slice(heap_, object, start, stop, bound(node.step));
}

Value Evaluator::evaluate(const Call& node, Scope& scope) {
  const int line = line_;
  const Value callee = evaluate(*node.callee, scope);
  const Args args = evaluate_arguments(node.arguments, scope);
  line_ = line;
  if (const auto* function = as<const Function*>(callee)) {
    heap_.step(weight((*function)->subject));
    return (*function)->call(heap_, (*function)->subject, args);
  }
  if (const auto* macro = as<const Macro*>(callee)) {
    const Value text = call_macro(**macro, args);
    line_ = line;
    return text;
  }
  require_defined(callee);
  fail("'", type_name(callee), "' object is not callable");
}

Value Evaluator::evaluate(const Filtered& node, Scope& scope) {
  const int line = line_;
  const Value input = evaluate(*node.input, scope);
  line_ = line;
  return apply_filter(node.call, input, scope);
}

Value Evaluator::evaluate(const Tested& node, Scope& scope) {
  const Value input = evaluate(*node.input, scope);
  if (!node.test) fail("No test named '", node.name, "'.");
  const Args args = evaluate_arguments(node.arguments, scope);
  return truthy(node.test(heap_, input, args)) != node.negated;
}

Args Evaluator::evaluate_arguments(const ArgumentList& list, Scope& scope) {
  Args args;
  for (const Expr* expr : list.positional) args.positional.push_back(evaluate(*expr, scope));
  for (const auto& [name, expr] : list.named) args.named.emplace_back(name, evaluate(*expr, scope));
  return args;
}

Value Evaluator::apply_filter(const FilterCall& call, const Value& input, Scope& scope) {
  if (!call.filter) fail("No filter named '", call.name, "'.");
  const Args args = evaluate_arguments(call.arguments, scope);
  // Who walks through a list or a dict pays for that: templates ask for the number of messages in
  // every round of a loop over them.
  if (is<Text>(input)) heap_.step(weight(input));
  return call.filter(heap_, input, args);
}

Value Evaluator::call_macro(const Macro& macro, const Args& args) {
  const MacroDefinition& definition = macro.definition;
  if (args.positional.size() > definition.parameters.size())
    fail("macro '", definition.name, "' takes not more than ", definition.parameters.size(),
         " argument(s)");
  for (const auto& argument : args.named) {
    size_t position = 0;
    while (position < definition.parameters.size() &&
           definition.parameters[position].first != argument.first)
      ++position;
    if (position == definition.parameters.size())
      fail("macro '", definition.name, "' takes no keyword argument '", argument.first, "'");
    if (position < args.positional.size())
      fail("macro '", definition.name, "' got multiple values for argument '", argument.first, "'");
  }
  Scope& scope = *heap_.make<Scope>(&macro.scope);
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    const auto& [name, default_value] = definition.parameters[i];
    const Value* given = i < args.positional.size() ? &args.positional[i] : nullptr;
    for (const auto& [argument, value] : args.named)
      if (argument == name) given = &value;
    Value value = Undefined{.why = Undefined::Why::parameter, .name = name};
    if (given) {
      value = *given;
    } else if (default_value) {
      value = evaluate(*default_value, scope);
    }
    set_variable(scope, name, value);
  }
  Flow flow = Flow::normal;
  return capture(definition.body, scope, flow);
}

}  // namespace slip::jinja
