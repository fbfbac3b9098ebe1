// The values of a template: handles that are cheap to copy and that live as long as the rendering.
// They behave like Python's, down to what they print as.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/jinja_heap.h"

namespace slip::jinja {

// Python's integers have no end. Schemas do hold 18446744073709551615; beyond 128 bits we refuse.
using Int = __int128;

struct None {};

// What a missing thing evaluates to. It prints as nothing and is false; to use it in any other way
// is an error whose text is built only then, since most templates ask for things that are missing.
struct Undefined {
  enum class Why { variable, attribute, element, parameter, forbidden, other };
  Why why = Why::other;
  std::string_view name = {};  // Why::other: the whole message
  const char* owner = "";      // the type that lacks it
};

struct Text {
  std::string_view bytes;
  bool safe = false;  // came through |safe or |e: is not escaped again, escapes what is added to it
};

struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Macro;
struct Function;

using Value = std::variant<Undefined, None, bool, Int, double, Text, const List*, const Dict*,
                           Namespace*, Loop*, const Macro*, const Function*>;

enum class ListType { list, tuple, range, generator, keys, values, items };

struct List : HeapObject {
  List(ListType t, std::vector<Value> v) : type(t), items(std::move(v)) {}
  ListType type;
  std::vector<Value> items;
  mutable bool spent = false;  // a generator gives its items once
};

// Keeps the order of insertion.
struct Dict : HeapObject {
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string_view, size_t> text_keys;  // positions in entries
};

struct Namespace : HeapObject {
  std::vector<std::pair<std::string_view, Value>> attributes;

  Value* find(std::string_view name);
  void set(std::string_view name, const Value& value);
};

// The variable `loop` of a for block. With a condition (`for x in xs if ...`) the items come one by
// one, because the body may change what the condition sees.
struct Loop : HeapObject {
  const List* items = nullptr;  // those known so far
  std::function<bool()> pull;   // adds one more to them; false at the end. Absent: all are known
  size_t index = 0;

  bool reaches(size_t i) {
    while (i >= items->items.size() && pull && pull()) continue;
    return i < items->items.size();
  }
  size_t count() {
    reaches(SIZE_MAX);
    return items->items.size();
  }
};

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// Filters, tests, methods and global functions: all act on a subject (globals on nothing).
using Builtin = Value (*)(Heap& heap, const Value& subject, const Args& args);

struct Function : HeapObject {
  Function(std::string_view n, Value s, Builtin c) : name(n), subject(s), call(c) {}
  std::string_view name;
  Value subject;
  Builtin call;
};

template <class T>
const T* as(const Value& value) {
  return std::get_if<T>(&value);
}
template <class T>
bool is(const Value& value) {
  return std::holds_alternative<T>(value);
}
inline const List* as_list(const Value& value) {
  const auto* list = as<const List*>(value);
  return list ? *list : nullptr;
}
inline const Dict* as_dict(const Value& value) {
  const auto* dict = as<const Dict*>(value);
  return dict ? *dict : nullptr;
}
// bool is an integer, as in Python.
std::optional<Int> as_int(const Value& value);
std::optional<double> as_number(const Value& value);

Value make_text(Heap& heap, std::string text, bool safe = false);
Value make_list(Heap& heap, std::vector<Value> items, ListType type = ListType::list);
Value make_pair_of(Heap& heap, const Value& first, const Value& second);
void dict_set(Heap& heap, Dict& dict, const Value& key, const Value& value);
const Value* dict_find(Heap& heap, const Dict& dict, const Value& key);

// The result borrows the strings of `json`.
Value from_json(Heap& heap, const Json& json);
// For tojson; fails on what JSON has no form for. `indent` is what printing will put before every
// level, and is charged to the heap here.
Json to_json(Heap& heap, const Value& value, size_t indent);

const char* type_name(const Value& value);  // "str", "dict", "NoneType", ...
bool truthy(const Value& value);
bool equal(Heap& heap, const Value& a, const Value& b);
bool less(Heap& heap, const Value& a, const Value& b, const char* symbol = "<");
bool contains(Heap& heap, const Value& container, const Value& item);
size_t length(Heap& heap, const Value& value);

// The items a for block would see. Consumes a generator.
const List* iterate(Heap& heap, const Value& value);
bool is_iterable(const Value& value);

// str() and repr(). The view stays valid for the rendering.
std::string_view to_text(Heap& heap, const Value& value);
std::string repr(Heap& heap, const Value& value);
std::string format_int(Int value);

// How much work a walk over the value is, in steps.
size_t weight(const Value& value);

[[noreturn]] void fail_undefined(const Undefined& undefined);
// Fails if the value is undefined, with the reason.
void require_defined(const Value& value);

}  // namespace slip::jinja
