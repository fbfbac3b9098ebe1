// Operators on values: arithmetic, attributes, subscripts, slices.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace slip::jinja {

Value apply_binary(Heap& heap, BinaryOp op, const Value& left, const Value& right);
Value apply_unary(UnaryOp op, const Value& operand);
bool apply_comparison(Heap& heap, CompareOp op, const Value& left, const Value& right);

// object.name: methods come before the keys of a dict.
Value get_attribute(Heap& heap, const Value& object, std::string_view name);
// object[key]: keys come before methods.
Value get_item(Heap& heap, const Value& object, const Value& key);
Value get_slice(Heap& heap, const Value& object, const Value& start, const Value& stop,
                const Value& step);  // None for an absent bound

}  // namespace slip::jinja
