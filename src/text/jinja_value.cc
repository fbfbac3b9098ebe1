#include "text/jinja_value.h"

#include "base/json_dump.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

const char* list_type_name(ListType type) {
  switch (type) {
    case ListType::list: return "list";
    case ListType::tuple: return "tuple";
    case ListType::range: return "range";
    case ListType::generator: return "generator";
    case ListType::keys: return "dict_keys";
    case ListType::values: return "dict_values";
    case ListType::items: return "dict_items";
  }
  unreachable("ListType");
}

std::string repr_list(Heap& heap, const List& list) {
  if (list.type == ListType::generator) return "<generator object>";
  if (list.type == ListType::range) {
    const auto bound = [&](size_t i) { return format_int(std::get<Int>(list.items[i])); };
    if (list.items.empty()) return "range(0, 0)";
    const Int first = std::get<Int>(list.items.front());
    const Int step = list.items.size() > 1 ? std::get<Int>(list.items[1]) - first : 1;
    const Int stop = std::get<Int>(list.items.back()) + step;
    return cat("range(", bound(0), ", ", format_int(stop), step == 1 ? "" : ", " + format_int(step),
               ")");
  }
  const bool tuple = list.type == ListType::tuple;
  const bool view = list.type != ListType::list && !tuple;
  std::string out = view ? cat(list_type_name(list.type), "([") : tuple ? "(" : "[";
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i) out += ", ";
    const std::string item = repr(heap, list.items[i]);
    heap.charge_bytes(item.size());
    out += item;
  }
  if (tuple && list.items.size() == 1) out += ',';
  return out += view ? "])" : tuple ? ")" : "]";
}

std::string repr_dict(Heap& heap, const Dict& dict) {
  std::string out = "{";
  for (const auto& [key, value] : dict.entries) {
    if (out.size() > 1) out += ", ";
    const std::string entry = repr(heap, key) + ": " + repr(heap, value);
    heap.charge_bytes(entry.size());
    out += entry;
  }
  return out += '}';
}

}  // namespace

Value* Namespace::find(std::string_view name) {
  for (auto& [key, value] : attributes)
    if (key == name) return &value;
  return nullptr;
}

void Namespace::set(std::string_view name, const Value& value) {
  if (Value* found = find(name)) {
    *found = value;
  } else {
    attributes.emplace_back(name, value);
  }
}

std::optional<Int> as_int(const Value& value) {
  if (const auto* integer = as<Int>(value)) return *integer;
  if (const auto* boolean = as<bool>(value)) return Int{*boolean};
  return std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const auto* real = as<double>(value)) return *real;
  if (const auto integer = as_int(value)) return static_cast<double>(*integer);
  return std::nullopt;
}

Value make_text(Heap& heap, std::string text, bool safe) {
  struct OwnedText : HeapObject {
    explicit OwnedText(std::string s) : text(std::move(s)) {}
    std::string text;
  };
  heap.charge_bytes(text.size());
  return Text{heap.make<OwnedText>(std::move(text))->text, safe};
}

Value make_list(Heap& heap, std::vector<Value> items, ListType type) {
  heap.step(items.size());
  heap.charge_bytes(items.size() * sizeof(Value));
  const List* list = heap.make<List>(type, std::move(items));
  return list;
}

Value make_pair_of(Heap& heap, const Value& first, const Value& second) {
  return make_list(heap, {first, second}, ListType::tuple);
}

void dict_set(Heap& heap, Dict& dict, const Value& key, const Value& value) {
  heap.step();
  const auto* list = as_list(key);
  if (as_dict(key) || (list && list->type == ListType::list))
    fail("unhashable type: '", type_name(key), "'");
  if (const Value* found = dict_find(heap, dict, key)) {
    *const_cast<Value*>(found) = value;  // an entry of `dict`, which is ours to change
    return;
  }
  heap.charge_bytes(2 * sizeof(Value) + 64);
  if (const auto* text = as<Text>(key)) dict.text_keys.emplace(text->bytes, dict.entries.size());
  dict.entries.emplace_back(key, value);
}

const Value* dict_find(Heap& heap, const Dict& dict, const Value& key) {
  if (const auto* text = as<Text>(key)) {
    const auto found = dict.text_keys.find(text->bytes);
    return found == dict.text_keys.end() ? nullptr : &dict.entries[found->second].second;
  }
  if (dict.text_keys.size() == dict.entries.size()) return nullptr;
  heap.step(dict.entries.size());
  for (const auto& entry : dict.entries)
    if (equal(heap, entry.first, key)) return &entry.second;
  return nullptr;
}

const char* type_name(const Value& value) {
  struct Visitor {
    const char* operator()(Undefined) const { return "Undefined"; }
    const char* operator()(None) const { return "NoneType"; }
    const char* operator()(bool) const { return "bool"; }
    const char* operator()(Int) const { return "int"; }
    const char* operator()(double) const { return "float"; }
    const char* operator()(Text text) const { return text.safe ? "Markup" : "str"; }
    const char* operator()(const List* list) const { return list_type_name(list->type); }
    const char* operator()(const Dict*) const { return "dict"; }
    const char* operator()(Namespace*) const { return "Namespace"; }
    const char* operator()(Loop*) const { return "LoopContext"; }
    const char* operator()(const Macro*) const { return "Macro"; }
    const char* operator()(const Function*) const { return "function"; }
  };
  return std::visit(Visitor{}, value);
}

bool truthy(const Value& value) {
  struct Visitor {
    bool operator()(Undefined) const { return false; }
    bool operator()(None) const { return false; }
    bool operator()(bool b) const { return b; }
    bool operator()(Int i) const { return i != 0; }
    bool operator()(double d) const { return d != 0; }
    bool operator()(Text text) const { return !text.bytes.empty(); }
    bool operator()(const List* list) const {
      return list->type == ListType::generator || !list->items.empty();
    }
    bool operator()(const Dict* dict) const { return !dict->entries.empty(); }
    bool operator()(const void*) const { return true; }
  };
  return std::visit(Visitor{}, value);
}

size_t length(Heap& heap, const Value& value) {
  if (is<Undefined>(value)) return 0;
  if (const auto* text = as<Text>(value)) {
    heap.step(weight(value));
    return count_characters(text->bytes);
  }
  if (const auto* dict = as_dict(value)) return dict->entries.size();
  const auto* list = as_list(value);
  if (list && list->type != ListType::generator) return list->items.size();
  if (const auto* loop = as<Loop*>(value)) return (*loop)->count();
  fail("object of type '", type_name(value), "' has no len()");
}

bool is_iterable(const Value& value) {
  return is<Undefined>(value) || is<Text>(value) || as_list(value) || as_dict(value) ||
         is<Loop*>(value);
}

const List* iterate(Heap& heap, const Value& value) {
  heap.step(weight(value));
  if (const auto* list = as_list(value)) {
    if (list->type != ListType::generator) return list;
    static const List kNothing(ListType::list, {});
    if (list->spent) return &kNothing;
    list->spent = true;
    return list;
  }
  std::vector<Value> items;
  if (const auto* text = as<Text>(value)) {
    for (const std::string_view character : characters_of(text->bytes))
      items.emplace_back(Text{character});
  } else if (const auto* dict = as_dict(value)) {
    for (const auto& entry : dict->entries) items.push_back(entry.first);
  } else if (!is<Undefined>(value)) {
    fail("'", type_name(value), "' object is not iterable");
  }
  return as_list(make_list(heap, std::move(items)));
}

std::string format_int(Int value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string reversed;
  for (; value != 0; value /= 10) {
    const int digit = static_cast<int>(value % 10);
    reversed += static_cast<char>('0' + (negative ? -digit : digit));
  }
  if (negative) reversed += '-';
  return {reversed.rbegin(), reversed.rend()};
}

std::string repr(Heap& heap, const Value& value) {
  const Heap::Descent descent(heap);
  heap.step();
  struct Visitor {
    Heap& heap;
    std::string operator()(Undefined) const { return "Undefined"; }
    std::string operator()(None) const { return "None"; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(Int i) const { return format_int(i); }
    std::string operator()(double d) const { return format_double(d); }
    std::string operator()(Text text) const {
      heap.step(text.bytes.size() / 32);
      return text.safe ? "Markup(" + quoted(text.bytes) + ")" : quoted(text.bytes);
    }
    std::string operator()(const List* list) const { return repr_list(heap, *list); }
    std::string operator()(const Dict* dict) const { return repr_dict(heap, *dict); }
    std::string operator()(Namespace*) const { return "<Namespace>"; }
    std::string operator()(Loop*) const { return "<LoopContext>"; }
    std::string operator()(const Macro*) const { return "<Macro>"; }
    std::string operator()(const Function*) const { return "<function>"; }
  };
  return std::visit(Visitor{heap}, value);
}

std::string_view to_text(Heap& heap, const Value& value) {
  if (const auto* text = as<Text>(value)) return text->bytes;
  if (is<Undefined>(value)) return "";
  if (const auto* boolean = as<bool>(value)) return *boolean ? "True" : "False";
  if (is<None>(value)) return "None";
  return std::get<Text>(make_text(heap, repr(heap, value))).bytes;
}

size_t weight(const Value& value) {
  if (const auto* text = as<Text>(value)) return 1 + text->bytes.size() / 32;
  if (const auto* list = as_list(value)) return 1 + list->items.size();
  if (const auto* dict = as_dict(value)) return 1 + dict->entries.size();
  return 1;
}

void fail_undefined(const Undefined& undefined) {
  switch (undefined.why) {
    case Undefined::Why::variable: fail("'", undefined.name, "' is undefined");
    case Undefined::Why::attribute:
      fail("'", undefined.owner, "' has no attribute '", undefined.name, "'");
    case Undefined::Why::element: fail(undefined.owner, " has no element ", undefined.name);
    case Undefined::Why::parameter: fail("parameter '", undefined.name, "' was not provided");
    case Undefined::Why::forbidden:
      fail("access to attribute '", undefined.name, "' of '", undefined.owner,
           "' object is unsafe: templates may not change values");
    case Undefined::Why::other: fail(undefined.name);
  }
  unreachable("Undefined::Why");
}

void require_defined(const Value& value) {
  if (const auto* undefined = as<Undefined>(value)) fail_undefined(*undefined);
}

}  // namespace slip::jinja
