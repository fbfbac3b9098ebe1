#include <cmath>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

const char* symbol_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::add: return "+";
    case BinaryOp::subtract: return "-";
    case BinaryOp::multiply: return "*";
    case BinaryOp::divide: return "/";
    case BinaryOp::floor_divide: return "//";
    case BinaryOp::modulo: return "%";
    case BinaryOp::power: return "** or pow()";
  }
  unreachable("BinaryOp");
}

Int checked(BinaryOp op, Int a, Int b) {
  Int result = 0;
  const bool overflow = op == BinaryOp::add        ? __builtin_add_overflow(a, b, &result)
                        : op == BinaryOp::subtract ? __builtin_sub_overflow(a, b, &result)
                                                   : __builtin_mul_overflow(a, b, &result);
  if (overflow) fail("integer too large");
  return result;
}

// Rounds towards minus infinity, as Python does.
Int floor_divide(Int a, Int b) {
  if (b == -1) return checked(BinaryOp::subtract, 0, a);
  const Int quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  Int result = 1;
  while (exponent > 0) {
    if (exponent & 1) result = checked(BinaryOp::multiply, result, base);
    exponent >>= 1;
    if (exponent > 0) base = checked(BinaryOp::multiply, base, base);
  }
  return result;
}

Value integer_op(BinaryOp op, Int a, Int b) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::subtract:
    case BinaryOp::multiply: return checked(op, a, b);
    case BinaryOp::divide:
      if (b == 0) fail("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case BinaryOp::floor_divide:
      if (b == 0) fail("integer division or modulo by zero");
      return floor_divide(a, b);
    case BinaryOp::modulo:
      if (b == 0) fail("integer modulo by zero");
      return b == -1 ? Int{0} : a - floor_divide(a, b) * b;
    case BinaryOp::power: return power(a, b);
  }
  unreachable("BinaryOp");
}

double float_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder != 0) return (remainder < 0) != (b < 0) ? remainder + b : remainder;
  return std::copysign(0.0, b);
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && b != std::floor(b)) fail("complex numbers are not supported");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("result too large");
  return result;
}

Value float_op(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::subtract: return a - b;
    case BinaryOp::multiply: return a * b;
    case BinaryOp::divide:
      if (b == 0) fail("float division by zero");
      return a / b;
    case BinaryOp::floor_divide:
      if (b == 0) fail("float floor division by zero");
      return std::floor((a - float_modulo(a, b)) / b + 0.5);
    case BinaryOp::modulo:
      if (b == 0) fail("float modulo");
      return float_modulo(a, b);
    case BinaryOp::power: return float_power(a, b);
  }
  unreachable("BinaryOp");
}

Value add_texts(Heap& heap, const Text& a, const Text& b) {
  heap.step((a.bytes.size() + b.bytes.size()) / 32);
  heap.charge_bytes(a.bytes.size() + b.bytes.size());
  const bool safe = a.safe || b.safe;
  std::string out = safe && !a.safe ? escape_html(a.bytes) : std::string(a.bytes);
  out += safe && !b.safe ? escape_html(b.bytes) : b.bytes;
  return make_text(heap, std::move(out), safe);
}

Value add_lists(Heap& heap, const List& a, const List& b) {
  heap.charge_bytes((a.items.size() + b.items.size()) * sizeof(Value));
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return make_list(heap, std::move(items), a.type);
}

// Of a text, list or tuple; a count below zero gives an empty one.
Value repeat(Heap& heap, const Value& value, Int count) {
  const auto* text = as<Text>(value);
  const auto* list = as_list(value);
  const size_t unit = text ? text->bytes.size() : list->items.size() * sizeof(Value);
  const Int bytes_limit = static_cast<Int>(heap.limits().memory);
  if (count < 0 || unit == 0) count = 0;
  if (count > bytes_limit) fail("repeated too often");
  const auto times = static_cast<size_t>(count);
  heap.charge_bytes(times * unit);
  heap.step(times);
  if (text) {
    std::string out;
    out.reserve(times * unit);
    for (size_t i = 0; i < times; ++i) out += text->bytes;
    return make_text(heap, std::move(out), text->safe);
  }
  std::vector<Value> items;
  for (size_t i = 0; i < times; ++i)
    items.insert(items.end(), list->items.begin(), list->items.end());
  return make_list(heap, std::move(items), list->type);
}

bool is_list_or_tuple(const List* list) {
  return list && (list->type == ListType::list || list->type == ListType::tuple);
}

bool is_repeatable(const Value& value) {
  return is<Text>(value) || is_list_or_tuple(as_list(value));
}

[[noreturn]] void fail_operands(BinaryOp op, const Value& left, const Value& right) {
  if (op == BinaryOp::add && is<Text>(left))
    fail("can only concatenate str (not \"", type_name(right), "\") to str");
  if (op == BinaryOp::add && is_list_or_tuple(as_list(left)))
    fail("can only concatenate ", type_name(left), " (not \"", type_name(right), "\") to ",
         type_name(left));
  fail("unsupported operand type(s) for ", symbol_of(op), ": '", type_name(left), "' and '",
       type_name(right), "'");
}

}  // namespace

Value apply_binary(Heap& heap, BinaryOp op, const Value& left, const Value& right) {
  require_defined(left);
  if (op == BinaryOp::modulo && is<Text>(left))
    return make_text(heap, format_percent(heap, std::get<Text>(left).bytes, right));
  require_defined(right);
  const auto int_left = as_int(left);
  const auto int_right = as_int(right);
  if (int_left && int_right) return integer_op(op, *int_left, *int_right);
  const auto number_left = as_number(left);
  const auto number_right = as_number(right);
  if (number_left && number_right) return float_op(op, *number_left, *number_right);
  if (op == BinaryOp::add) {
    if (is<Text>(left) && is<Text>(right))
      return add_texts(heap, std::get<Text>(left), std::get<Text>(right));
    const auto* a = as_list(left);
    const auto* b = as_list(right);
    if (is_list_or_tuple(a) && b && a->type == b->type) return add_lists(heap, *a, *b);
  }
  if (op == BinaryOp::multiply) {
    if (is_repeatable(left) && int_right) return repeat(heap, left, *int_right);
    if (is_repeatable(right) && int_left) return repeat(heap, right, *int_left);
  }
  fail_operands(op, left, right);
}

Value apply_unary(UnaryOp op, const Value& operand) {
  if (op == UnaryOp::logical_not) return !truthy(operand);
  require_defined(operand);
  const bool negate = op == UnaryOp::negate;
  if (const auto integer = as_int(operand))
    return negate ? integer_op(BinaryOp::subtract, 0, *integer) : Value(*integer);
  if (const auto* real = as<double>(operand)) return negate ? -*real : *real;
  fail("bad operand type for unary ", negate ? "-" : "+", ": '", type_name(operand), "'");
}

bool apply_comparison(Heap& heap, CompareOp op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOp::equal: return equal(heap, left, right);
    case CompareOp::not_equal: return !equal(heap, left, right);
    case CompareOp::less: return less(heap, left, right, "<");
    case CompareOp::greater: return less(heap, right, left, ">");
    // Not the negations: comparisons with nan are all false.
    case CompareOp::less_equal: return less(heap, left, right, "<=") || equal(heap, left, right);
    case CompareOp::greater_equal: return less(heap, right, left, ">=") || equal(heap, left, right);
    case CompareOp::in: return contains(heap, right, left);
    case CompareOp::not_in: return !contains(heap, right, left);
  }
  unreachable("CompareOp");
}

}  // namespace slip::jinja
