// Filters on lists and dicts.
#include <algorithm>
#include <array>

#include "text/jinja_builtins.h"
#include "text/jinja_filters.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

Value count(Heap& heap, const Value& value, const Args&) { return Int(length(heap, value)); }

Value items(Heap& heap, const Value& value, const Args&) {
  std::vector<Value> pairs;
  if (!is<Undefined>(value)) {
    const Dict* dict = as_dict(value);
    if (!dict) fail("Can only get item pairs from a mapping.");
    for (const auto& [key, entry] : dict->entries) pairs.push_back(make_pair_of(heap, key, entry));
  }
  return make_list(heap, std::move(pairs), ListType::generator);
}

Value join(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "join", {"d", "attribute"});
  const std::string_view separator = given.has(0) ? to_text(heap, given[0]) : "";
  std::string out;
  bool first = true;
  for (const Value& item : iterate(heap, value)->items) {
    const bool by_attribute = given.has(1) && !is<None>(given[1]);
    const std::string_view text =
        to_text(heap, by_attribute ? attribute_by_path(heap, item, given[1]) : item);
    heap.charge_bytes(separator.size() + text.size());
    if (!first) out += separator;
    first = false;
    out += text;
  }
  return make_text(heap, std::move(out));
}

Value first_item(Heap& heap, const Value& value, const Args&) {
  const List* list = iterate(heap, value);
  if (list->items.empty()) return Undefined{.name = "No first item, sequence was empty."};
  return list->items.front();
}

Value last_item(Heap& heap, const Value& value, const Args&) {
  const List* list = iterate(heap, value);
  if (list->items.empty()) return Undefined{.name = "No last item, sequence was empty."};
  return list->items.back();
}

Value to_list(Heap& heap, const Value& value, const Args&) {
  return make_list(heap, iterate(heap, value)->items);
}

Value reverse(Heap& heap, const Value& value, const Args&) {
  std::vector<Value> reversed = iterate(heap, value)->items;
  std::reverse(reversed.begin(), reversed.end());
  if (!is<Text>(value)) return make_list(heap, std::move(reversed), ListType::generator);
  std::string out;
  for (const Value& character : reversed) out += std::get<Text>(character).bytes;
  return make_text(heap, std::move(out));
}

Value fold_case(Heap& heap, const Value& value, bool case_sensitive) {
  const auto* text = as<Text>(value);
  return text && !case_sensitive ? make_text(heap, to_lower(text->bytes)) : value;
}

// What sort(), unique(), min() and max() compare: the item, or its attributes ("a,b": both).
Value sort_key(Heap& heap, const Value& item, const Value* attribute, bool case_sensitive) {
  if (!attribute || is<None>(*attribute)) return fold_case(heap, item, case_sensitive);
  const auto* path = as<Text>(*attribute);
  if (!path || path->bytes.find(',') == std::string_view::npos)
    return fold_case(heap, attribute_by_path(heap, item, *attribute), case_sensitive);
  std::vector<Value> keys;
  for (const std::string_view part : split(path->bytes, ",", -1))
    keys.push_back(fold_case(heap, attribute_by_path(heap, item, Text{part}), case_sensitive));
  return make_list(heap, std::move(keys));
}

using Keyed = std::pair<Value, Value>;  // sort key, item

// Stable in both directions, as Python's sort(reverse=True) is.
std::vector<Value> sorted(Heap& heap, std::vector<Keyed> keyed, bool reversed) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return reversed ? less(heap, b.first, a.first) : less(heap, a.first, b.first);
  });
  std::vector<Value> out;
  out.reserve(keyed.size());
  for (const Keyed& entry : keyed) out.push_back(entry.second);
  return out;
}

Value sort(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "sort", {"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> keyed;
  for (const Value& item : iterate(heap, value)->items)
    keyed.emplace_back(
        sort_key(heap, item, given.has(2) ? &given[2] : nullptr, given.flag(1, false)), item);
  return make_list(heap, sorted(heap, std::move(keyed), given.flag(0, false)));
}

Value dictsort(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "dictsort", {"case_sensitive", "by", "reverse"});
  require_defined(value);
  const Dict* dict = as_dict(value);
  if (!dict) fail("'", type_name(value), "' object has no attribute 'items'");
  const std::string_view by = given.text(1).value_or("key");
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const auto& [key, entry] : dict->entries)
    keyed.emplace_back(fold_case(heap, by == "key" ? key : entry, given.flag(0, false)),
                       make_pair_of(heap, key, entry));
  return make_list(heap, sorted(heap, std::move(keyed), given.flag(2, false)));
}

Value unique(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "unique", {"case_sensitive", "attribute"});
  Dict& seen = *heap.make<Dict>();
  std::vector<Value> kept;
  for (const Value& item : iterate(heap, value)->items) {
    const Value key =
        sort_key(heap, item, given.has(1) ? &given[1] : nullptr, given.flag(0, false));
    if (dict_find(heap, seen, key)) continue;
    dict_set(heap, seen, key, None{});
    kept.push_back(item);
  }
  return make_list(heap, std::move(kept), ListType::generator);
}

template <bool largest>
Value extreme(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, largest ? "max" : "min", {"case_sensitive", "attribute"});
  std::optional<Keyed> best;
  for (const Value& item : iterate(heap, value)->items) {
    const Value key =
        sort_key(heap, item, given.has(1) ? &given[1] : nullptr, given.flag(0, false));
    if (!best || (largest ? less(heap, best->first, key) : less(heap, key, best->first)))
      best = Keyed(key, item);
  }
  return best ? best->second : Value(Undefined{.name = "No aggregated item, sequence was empty."});
}

Value sum(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "sum", {"attribute", "start"});
  Value total = given.has(1) ? given[1] : Value(Int{0});
  const bool by_attribute = given.has(0) && !is<None>(given[0]);
  for (const Value& item : iterate(heap, value)->items)
    total = apply_binary(heap, BinaryOp::add, total,
                         by_attribute ? attribute_by_path(heap, item, given[0]) : item);
  return total;
}

Value attribute(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "attr", {"name"}, 1);
  const std::string_view name = to_text(heap, given[0]);
  // Unlike the dot, this filter does not look at the keys of a dict.
  if (as_dict(value) && !find_dict_method(name))
    return Undefined{Undefined::Why::attribute, name, "dict object"};
  return get_attribute(heap, value, name);
}

// The arguments after the first `count` positional ones.
Args without_first(const Args& args, size_t count) {
  Args rest = args;
  const auto begin = rest.positional.begin();
  rest.positional.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  return rest;
}

Value map(Heap& heap, const Value& value, const Args& args) {
  std::vector<Value> out;
  if (args.positional.empty()) {
    const Parameters given(args, "map", {"attribute", "default"}, 1);
    for (const Value& item : iterate(heap, value)->items) {
      const Value found = attribute_by_path(heap, item, given[0]);
      out.push_back(is<Undefined>(found) && given.has(1) ? given[1] : found);
    }
  } else {
    const std::string_view name = to_text(heap, args.positional[0]);
    const Builtin filter = find_filter(name);
    if (!filter) fail("No filter named '", name, "'.");
    const Args rest = without_first(args, 1);
    // A filter may name map itself as its argument, and so on.
    const Heap::Descent descent(heap);
    for (const Value& item : iterate(heap, value)->items) {
      heap.step(weight(item));
      out.push_back(filter(heap, item, rest));
    }
  }
  return make_list(heap, std::move(out), ListType::generator);
}

// select, reject, selectattr, rejectattr: keep the items for which the test gives `wanted`.
template <bool by_attribute, bool wanted>
Value select(Heap& heap, const Value& value, const Args& args) {
  const size_t test_at = by_attribute ? 1 : 0;
  if (args.positional.size() < test_at) fail("Missing parameter for attribute name");
  Builtin test = nullptr;
  Args rest;
  if (args.positional.size() > test_at) {
    const std::string_view name = to_text(heap, args.positional[test_at]);
    test = find_test(name);
    if (!test) fail("No test named '", name, "'.");
    rest = without_first(args, test_at + 1);
  }
  std::vector<Value> kept;
  for (const Value& item : iterate(heap, value)->items) {
    heap.step();
    const Value tested = by_attribute ? attribute_by_path(heap, item, args.positional[0]) : item;
    const bool holds = test ? truthy(test(heap, tested, rest)) : truthy(tested);
    if (holds == wanted) kept.push_back(item);
  }
  return make_list(heap, std::move(kept), ListType::generator);
}

}  // namespace

Builtin find_sequence_filter(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Builtin>, 20> kFilters = {{
      {"length", count},
      {"count", count},
      {"items", items},
      {"join", join},
      {"first", first_item},
      {"last", last_item},
      {"list", to_list},
      {"reverse", reverse},
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", unique},
      {"min", extreme<false>},
      {"max", extreme<true>},
      {"sum", sum},
      {"attr", attribute},
      {"map", map},
      {"select", select<false, true>},
      {"reject", select<false, false>},
      {"selectattr", select<true, true>},
      {"rejectattr", select<true, false>},
  }};
  for (const auto& [known, filter] : kFilters)
    if (known == name) return filter;
  return nullptr;
}

}  // namespace slip::jinja
