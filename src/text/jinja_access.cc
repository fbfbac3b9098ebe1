// Attributes, subscripts and slices.
#include <algorithm>
#include <array>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

// What Jinja2 calls a type in messages about missing attributes.
const char* owner_name(const Value& value) {
  if (is<None>(value)) return "None";
  if (is<Text>(value)) return "str object";
  if (is<bool>(value)) return "bool object";
  if (is<Int>(value)) return "int object";
  if (is<double>(value)) return "float object";
  if (as_dict(value)) return "dict object";
  if (is<Namespace*>(value)) return "jinja2.utils.Namespace object";
  if (is<Loop*>(value)) return "jinja2.runtime.LoopContext object";
  if (is<const Macro*>(value)) return "jinja2.runtime.Macro object";
  const auto* list = as_list(value);
  if (!list) return "function object";
  return list->type == ListType::list    ? "list object"
         : list->type == ListType::tuple ? "tuple object"
                                         : "generator object";
}

template <size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Methods that Python has and the sandbox refuses because they change their object.
constexpr std::array<std::string_view, 8> kListChangers = {"append", "clear",  "extend",  "insert",
                                                           "pop",    "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 5> kDictChangers = {"clear", "pop", "popitem", "setdefault",
                                                           "update"};

Value bind_method(Heap& heap, const Value& subject, std::string_view name, Builtin method) {
  const Function* function = heap.make<Function>(name, subject, method);
  return function;
}

Value missing(const Value& object, std::string_view name) {
  return Undefined{Undefined::Why::attribute, name, owner_name(object)};
}

Value cycle(Heap&, const Value& subject, const Args& args) {
  if (args.positional.empty()) fail("no items for cycling given");
  return args.positional[std::get<Loop*>(subject)->index % args.positional.size()];
}

Value loop_attribute(Heap& heap, Loop& loop, std::string_view name) {
  if (name == "index") return Int(loop.index + 1);
  if (name == "index0") return Int(loop.index);
  if (name == "revindex") return Int(loop.count() - loop.index);
  if (name == "revindex0") return Int(loop.count() - loop.index - 1);
  if (name == "first") return loop.index == 0;
  if (name == "last") return !loop.reaches(loop.index + 1);
  if (name == "length") return Int(loop.count());
  // Only recursive loops, which we do not have, go deeper.
  if (name == "depth") return Int{1};
  if (name == "depth0") return Int{0};
  if (name == "cycle") return bind_method(heap, &loop, name, cycle);
  if (name == "previtem") {
    if (loop.index > 0) return loop.items->items[loop.index - 1];
    return Undefined{.name = "there is no previous item"};
  }
  if (name == "nextitem") {
    if (loop.reaches(loop.index + 1)) return loop.items->items[loop.index + 1];
    return Undefined{.name = "there is no next item"};
  }
  return missing(&loop, name);
}

Value list_item(Heap& heap, const Value& object, const List& list, Int index) {
  const bool indexable =
      list.type == ListType::list || list.type == ListType::tuple || list.type == ListType::range;
  const auto count = static_cast<Int>(list.items.size());
  const Int position = index < 0 ? index + count : index;
  if (indexable && position >= 0 && position < count)
    return list.items[static_cast<size_t>(position)];
  const Value name = make_text(heap, format_int(index));
  return Undefined{Undefined::Why::element, std::get<Text>(name).bytes, owner_name(object)};
}

Value text_item(Heap& heap, const Value& object, std::string_view text, Int index) {
  heap.step(weight(object));
  const auto count = static_cast<Int>(count_characters(text));
  Int position = index < 0 ? index + count : index;
  if (position < 0 || position >= count)
    return list_item(heap, object, List(ListType::list, {}), index);
  for (; position > 0; --position) text.remove_prefix(decode_character(text).length);
  return Text{text.substr(0, decode_character(text).length)};
}

struct Range {
  Int start;
  Int stop;
  Int step;
  bool contains(Int i) const { return step > 0 ? i < stop : i > stop; }
};

std::optional<Int> bound(const Value& value) {
  if (is<None>(value)) return std::nullopt;
  require_defined(value);
  const auto integer = as_int(value);
  if (!integer) fail("slice indices must be integers or None");
  // Beyond these a bound means no more than "all", and sums with it cannot overflow.
  constexpr Int kFar = Int{1} << 64;
  return std::clamp(*integer, -kFar, kFar);
}

// slice.indices() of Python.
Range slice_range(Int count, const Value& start, const Value& stop, const Value& step) {
  Range range{0, 0, bound(step).value_or(1)};
  if (range.step == 0) fail("slice step cannot be zero");
  const bool forward = range.step > 0;
  const Int lowest = forward ? 0 : -1;
  const Int highest = forward ? count : count - 1;
  const auto place = [&](const Value& value, Int otherwise) {
    const auto given = bound(value);
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + count : *given, lowest, highest);
  };
  range.start = place(start, forward ? 0 : highest);
  range.stop = place(stop, forward ? highest : -1);
  return range;
}

}  // namespace

Value get_attribute(Heap& heap, const Value& object, std::string_view name) {
  require_defined(object);
  if (is<Text>(object)) {
    const Builtin method = find_text_method(name);
    return method ? bind_method(heap, object, name, method) : missing(object, name);
  }
  if (const auto* dict = as_dict(object)) {
    if (const Builtin method = find_dict_method(name))
      return bind_method(heap, object, name, method);
    if (is_one_of(name, kDictChangers)) return Undefined{Undefined::Why::forbidden, name, "dict"};
    const Value* found = dict_find(heap, *dict, Text{name});
    return found ? *found : missing(object, name);
  }
  if (const auto* list = as_list(object)) {
    const bool has_methods = list->type == ListType::list || list->type == ListType::tuple;
    if (const Builtin method = has_methods ? find_list_method(name) : nullptr)
      return bind_method(heap, object, name, method);
    if (list->type == ListType::list && is_one_of(name, kListChangers))
      return Undefined{Undefined::Why::forbidden, name, "list"};
    return missing(object, name);
  }
  if (const auto* ns = as<Namespace*>(object)) {
    heap.step((*ns)->attributes.size() / 8);
    const Value* found = (*ns)->find(name);
    return found ? *found : missing(object, name);
  }
  if (const auto* loop = as<Loop*>(object)) return loop_attribute(heap, **loop, name);
  return missing(object, name);
}

Value get_item(Heap& heap, const Value& object, const Value& key) {
  require_defined(object);
  if (const auto* dict = as_dict(object))
    if (const Value* found = dict_find(heap, *dict, key)) return *found;
  if (const auto* text = as<Text>(key)) return get_attribute(heap, object, text->bytes);
  if (const auto index = as_int(key)) {
    if (const auto* list = as_list(object)) return list_item(heap, object, *list, *index);
    if (const auto* text = as<Text>(object)) return text_item(heap, object, text->bytes, *index);
  }
  const Value name = make_text(heap, repr(heap, key));
  return Undefined{Undefined::Why::element, std::get<Text>(name).bytes, owner_name(object)};
}

Value get_slice(Heap& heap, const Value& object, const Value& start, const Value& stop,
                const Value& step) {
  require_defined(object);
  heap.step(weight(object));
  if (const auto* list = as_list(object);
      list && (list->type == ListType::list || list->type == ListType::tuple ||
               list->type == ListType::range)) {
    const Range range = slice_range(static_cast<Int>(list->items.size()), start, stop, step);
    std::vector<Value> items;
    for (Int i = range.start; range.contains(i); i += range.step)
      items.push_back(list->items[static_cast<size_t>(i)]);
    return make_list(heap, std::move(items), list->type);
  }
  if (const auto* text = as<Text>(object)) {
    const std::vector<std::string_view> characters = characters_of(text->bytes);
    const Range range = slice_range(static_cast<Int>(characters.size()), start, stop, step);
    std::string out;
    for (Int i = range.start; range.contains(i); i += range.step)
      out += characters[static_cast<size_t>(i)];
    return make_text(heap, std::move(out), text->safe);
  }
  fail("'", type_name(object), "' object is not subscriptable");
}

}  // namespace slip::jinja
