#include "text/jinja_eval.h"

#include <algorithm>

#include "text/jinja_builtins.h"

namespace slip::jinja {

std::string Evaluator::run(const Body& body, const JsonObject& context) {
  Scope& root = *heap_.make<Scope>(nullptr);
  const Function* clock =
      heap_.make<Function>("strftime_now", Value(Int{now_}), find_global("strftime_now"));
  set_variable(root, clock->name, clock);
  for (const auto& member : context) {
    const std::string_view name(member.key().data(), member.key().size());
    set_variable(root, name, from_json(heap_, member.value()));
  }
  std::string out;
  out_ = &out;
  execute(body, root);
  return out;
}

Evaluator::Flow Evaluator::execute(const Body& body, Scope& scope) {
  const Heap::Descent descent(heap_);
  for (const Statement* statement : body) {
    heap_.step();
    line_ = statement->line;
    const Flow flow =
        std::visit([&](const auto& node) { return execute(node, scope); }, statement->node);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute(const Data& node, Scope&) {
  emit(node.text);
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute(const Print& node, Scope& scope) {
  const Value value = evaluate(*node.value, scope);
  emit(to_text(heap_, value));
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute(const If& node, Scope& scope) {
  for (const auto& [condition, body] : node.branches)
    if (truthy(evaluate(*condition, scope))) return execute(body, scope);
  return execute(node.otherwise, scope);
}

void Evaluator::select_one_by_one(Loop& loop, const For& node, Scope& scope) {
  const List* all = loop.items;
  List* selected = heap_.make<List>(ListType::list, std::vector<Value>());
  loop.items = selected;
  loop.pull = [this, &node, &scope, all, selected, next = size_t{0}]() mutable {
    while (next < all->items.size()) {
      const Value& item = all->items[next++];
      Scope& round = *heap_.make<Scope>(&scope);
      assign(node.target, item, round);
      if (!truthy(evaluate(*node.condition, round))) continue;
      heap_.charge_bytes(sizeof(Value));
      selected->items.push_back(item);
      return true;
    }
    return false;
  };
}

Evaluator::Flow Evaluator::execute(const For& node, Scope& scope) {
  Loop* loop = heap_.make<Loop>();
  loop->items = iterate(heap_, evaluate(*node.items, scope));
  if (node.condition) select_one_by_one(*loop, node, scope);
  if (!loop->reaches(0)) return execute(node.otherwise, *heap_.make<Scope>(&scope));
  Scope* round = heap_.make<Scope>(&scope);
  for (; loop->reaches(loop->index); ++loop->index) {
    heap_.step();
    // What a round sets is gone in the next one.
    if (round->seen_by_macro) round = heap_.make<Scope>(&scope);
    round->variables.clear();
    set_variable(*round, "loop", loop);
    assign(node.target, loop->items->items[loop->index], *round);
    if (execute(node.body, *round) == Flow::leave_loop) break;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute(const Set& node, Scope& scope) {
  assign(node.target, evaluate(*node.value, scope), scope);
  return Flow::normal;
}

template <class Block>
Value Evaluator::capture_filtered(const Block& block, Scope& scope, Flow& flow) {
  Value value = capture(block.body, scope, flow);
  if (flow != Flow::normal) return value;
  for (const FilterCall& filter : block.filters) value = apply_filter(filter, value, scope);
  return value;
}

Evaluator::Flow Evaluator::execute(const SetBlock& node, Scope& scope) {
  Flow flow = Flow::normal;
  const Value value = capture_filtered(node, scope, flow);
  if (flow == Flow::normal) assign(node.target, value, scope);
  return flow;
}

Evaluator::Flow Evaluator::execute(const MacroDefinition& node, Scope& scope) {
  const Macro* macro = heap_.make<Macro>(node, scope);
  for (Scope* s = &scope; s; s = s->parent) s->seen_by_macro = true;
  set_variable(scope, node.name, macro);
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute(const FilterBlock& node, Scope& scope) {
  Flow flow = Flow::normal;
  const Value value = capture_filtered(node, scope, flow);
  if (flow == Flow::normal) emit(to_text(heap_, value));
  return flow;
}

Evaluator::Flow Evaluator::execute(const With& node, Scope& scope) {
  Scope& inner = *heap_.make<Scope>(&scope);
  for (const auto& [target, value] : node.assignments)
    assign(target, evaluate(*value, scope), inner);
  return execute(node.body, inner);
}

Evaluator::Flow Evaluator::execute(const Break&, Scope&) { return Flow::leave_loop; }

Evaluator::Flow Evaluator::execute(const Continue&, Scope&) { return Flow::next_round; }

void Evaluator::assign(const Target& target, const Value& value, Scope& scope) {
  if (target.tuple) {
    const List* items = iterate(heap_, value);
    const size_t wanted = target.items.size();
    if (items->items.size() < wanted)
      fail("not enough values to unpack (expected ", wanted, ", got ", items->items.size(), ")");
    if (items->items.size() > wanted) fail("too many values to unpack (expected ", wanted, ")");
    for (size_t i = 0; i < wanted; ++i) assign(target.items[i], items->items[i], scope);
    return;
  }
  if (target.attribute.empty()) return set_variable(scope, target.name, value);
  const Value object = find_variable(target.name, scope);
  const auto* ns = as<Namespace*>(object);
  if (!ns) fail("cannot assign attribute on non-namespace object");
  heap_.charge_bytes(sizeof(Value));
  heap_.step((*ns)->attributes.size() / 8);
  (*ns)->set(target.attribute, value);
}

void Evaluator::set_variable(Scope& scope, std::string_view name, const Value& value) {
  heap_.step(scope.variables.size() / 8);
  for (auto& [known, slot] : scope.variables) {
    if (known != name) continue;
    slot = value;
    return;
  }
  if (scope.variables.size() == scope.variables.capacity())  // which will double
    heap_.charge_bytes(sizeof(scope.variables[0]) * std::max<size_t>(1, scope.variables.size()));
  scope.variables.emplace_back(name, value);
}

Value Evaluator::find_variable(std::string_view name, Scope& scope) {
  for (const Scope* s = &scope; s; s = s->parent) {
    heap_.step(s->variables.size() / 8);
    for (const auto& [known, value] : s->variables)
      if (known == name) return value;
  }
  if (const Builtin global = find_global(name)) {
    const Function* function = heap_.make<Function>(name, Value(Undefined{}), global);
    return function;
  }
  return Undefined{.why = Undefined::Why::variable, .name = name};
}

void Evaluator::emit(std::string_view text) {
  if (text.size() > heap_.limits().output - out_->size())
    fail_for_size("the output is larger than ", heap_.limits().output, " bytes");
  heap_.charge_bytes(text.size());
  out_->append(text);
}

Value Evaluator::capture(const Body& body, Scope& scope, Flow& flow) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  flow = execute(body, *heap_.make<Scope>(&scope));
  out_ = outer;
  return make_text(heap_, std::move(text));
}

}  // namespace slip::jinja
