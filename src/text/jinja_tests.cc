// What may follow `is`, and be named in select() and its relatives.
#include <array>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

const Value& only_argument(const Args& args, const char* test) {
  if (args.positional.size() != 1 || !args.named.empty())
    fail("test '", test, "' takes one argument");
  return args.positional[0];
}

template <CompareOp op>
Value compare(Heap& heap, const Value& value, const Args& args) {
  return apply_comparison(heap, op, value, only_argument(args, "comparison"));
}

template <class T>
Value has_type(Heap&, const Value& value, const Args&) {
  return is<T>(value);
}

Value is_defined(Heap&, const Value& value, const Args&) { return !is<Undefined>(value); }

template <bool wanted>
Value is_bool(Heap&, const Value& value, const Args&) {
  const auto* boolean = as<bool>(value);
  return boolean && *boolean == wanted;
}

Value is_number(Heap&, const Value& value, const Args&) { return as_number(value).has_value(); }

Value test_iterable(Heap&, const Value& value, const Args&) { return is_iterable(value); }

Value is_sequence(Heap&, const Value& value, const Args&) {
  if (const auto* list = as_list(value))
    return list->type == ListType::list || list->type == ListType::tuple ||
           list->type == ListType::range;
  return is<Text>(value) || is<Undefined>(value) || as_dict(value);
}

Value is_callable(Heap&, const Value& value, const Args&) {
  return is<const Function*>(value) || is<const Macro*>(value) || is<Loop*>(value) ||
         is<Undefined>(value);
}

Value is_in(Heap& heap, const Value& value, const Args& args) {
  return contains(heap, only_argument(args, "in"), value);
}

// Identity. Equal scalars of one type cannot be told apart by a template.
Value is_same(Heap& heap, const Value& value, const Args& args) {
  const Value& other = only_argument(args, "sameas");
  if (value.index() != other.index()) return false;
  if (const auto* list = as_list(value)) return list == as_list(other);
  if (const auto* dict = as_dict(value)) return dict == as_dict(other);
  return equal(heap, value, other);
}

Value remainder_is(Heap& heap, const Value& value, Int divisor, Int wanted) {
  return equal(heap, apply_binary(heap, BinaryOp::modulo, value, Value(divisor)), Value(wanted));
}

Value is_odd(Heap& heap, const Value& value, const Args&) {
  return remainder_is(heap, value, 2, 1);
}
Value is_even(Heap& heap, const Value& value, const Args&) {
  return remainder_is(heap, value, 2, 0);
}

Value is_divisible(Heap& heap, const Value& value, const Args& args) {
  const Value& divisor = only_argument(args, "divisibleby");
  return equal(heap, apply_binary(heap, BinaryOp::modulo, value, divisor), Value(Int{0}));
}

Value is_lower(Heap& heap, const Value& value, const Args&) {
  const std::string_view text = to_text(heap, value);
  heap.step(text.size() / 32);
  return has_letters(text) && to_lower(text) == text;
}

Value is_upper(Heap& heap, const Value& value, const Args&) {
  const std::string_view text = to_text(heap, value);
  heap.step(text.size() / 32);
  return has_letters(text) && to_upper(text) == text;
}

Value is_escaped(Heap&, const Value& value, const Args&) {
  const auto* text = as<Text>(value);
  return text && text->safe;
}

Value is_filter(Heap&, const Value& value, const Args&) {
  const auto* name = as<Text>(value);
  return name && find_filter(name->bytes);
}

Value is_test(Heap&, const Value& value, const Args&) {
  const auto* name = as<Text>(value);
  return name && find_test(name->bytes);
}

}  // namespace

Builtin find_test(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Builtin>, 39> kTests = {{
      {"defined", is_defined},
      {"undefined", has_type<Undefined>},
      {"none", has_type<None>},
      {"string", has_type<Text>},
      {"mapping", has_type<const Dict*>},
      {"boolean", has_type<bool>},
      {"integer", has_type<Int>},
      {"float", has_type<double>},
      {"number", is_number},
      {"true", is_bool<true>},
      {"false", is_bool<false>},
      {"iterable", test_iterable},
      {"sequence", is_sequence},
      {"callable", is_callable},
      {"in", is_in},
      {"sameas", is_same},
      {"odd", is_odd},
      {"even", is_even},
      {"divisibleby", is_divisible},
      {"lower", is_lower},
      {"upper", is_upper},
      {"escaped", is_escaped},
      {"filter", is_filter},
      {"test", is_test},
      {"eq", compare<CompareOp::equal>},
      {"equalto", compare<CompareOp::equal>},
      {"==", compare<CompareOp::equal>},
      {"ne", compare<CompareOp::not_equal>},
      {"!=", compare<CompareOp::not_equal>},
      {"lt", compare<CompareOp::less>},
      {"lessthan", compare<CompareOp::less>},
      {"<", compare<CompareOp::less>},
      {"le", compare<CompareOp::less_equal>},
      {"<=", compare<CompareOp::less_equal>},
      {"gt", compare<CompareOp::greater>},
      {"greaterthan", compare<CompareOp::greater>},
      {">", compare<CompareOp::greater>},
      {"ge", compare<CompareOp::greater_equal>},
      {">=", compare<CompareOp::greater_equal>},
  }};
  for (const auto& [known, test] : kTests)
    if (known == name) return test;
  return nullptr;
}

}  // namespace slip::jinja
