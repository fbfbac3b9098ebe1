// ==, < and `in`, as Python defines them between types.
#include "text/jinja_value.h"

namespace slip::jinja {
namespace {

bool is_sequence_type(ListType type) {
  return type == ListType::list || type == ListType::tuple || type == ListType::range;
}

bool equal_lists(Heap& heap, const List& a, const List& b) {
  if (&a == &b) return true;
  if (a.type != b.type || !is_sequence_type(a.type) || a.items.size() != b.items.size())
    return false;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!equal(heap, a.items[i], b.items[i])) return false;
  return true;
}

bool equal_dicts(Heap& heap, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = dict_find(heap, b, key);
    if (!other || !equal(heap, value, *other)) return false;
  }
  return true;
}

}  // namespace

bool equal(Heap& heap, const Value& a, const Value& b) {
  const Heap::Descent descent(heap);
  heap.step();
  const auto int_a = as_int(a);
  const auto int_b = as_int(b);
  if (int_a && int_b) return *int_a == *int_b;
  const auto number_a = as_number(a);
  const auto number_b = as_number(b);
  if (number_a && number_b) return *number_a == *number_b;
  if (a.index() != b.index()) return false;
  if (const auto* text = as<Text>(a)) {
    heap.step(text->bytes.size() / 32);
    return text->bytes == std::get<Text>(b).bytes;
  }
  if (const auto* list = as_list(a)) return equal_lists(heap, *list, *as_list(b));
  if (const auto* dict = as_dict(a)) return equal_dicts(heap, *dict, *as_dict(b));
  if (is<Undefined>(a) || is<None>(a)) return true;
  if (const auto* ns = as<Namespace*>(a)) return *ns == std::get<Namespace*>(b);
  if (const auto* loop = as<Loop*>(a)) return *loop == std::get<Loop*>(b);
  if (const auto* macro = as<const Macro*>(a)) return *macro == std::get<const Macro*>(b);
  const auto* function = std::get<const Function*>(a);
  return function == std::get<const Function*>(b);
}

bool less(Heap& heap, const Value& a, const Value& b, const char* symbol) {
  const Heap::Descent descent(heap);
  heap.step();
  require_defined(a);
  require_defined(b);
  const auto int_a = as_int(a);
  const auto int_b = as_int(b);
  if (int_a && int_b) return *int_a < *int_b;
  const auto number_a = as_number(a);
  const auto number_b = as_number(b);
  if (number_a && number_b) return *number_a < *number_b;
  const auto* text_a = as<Text>(a);
  const auto* text_b = as<Text>(b);
  if (text_a && text_b) {
    heap.step(text_a->bytes.size() / 32);
    return text_a->bytes < text_b->bytes;  // the order of UTF-8 bytes is that of code points
  }
  const auto* list_a = as_list(a);
  const auto* list_b = as_list(b);
  if (list_a && list_b && list_a->type == list_b->type &&
      (list_a->type == ListType::list || list_a->type == ListType::tuple)) {
    for (size_t i = 0; i < list_a->items.size() && i < list_b->items.size(); ++i)
      if (!equal(heap, list_a->items[i], list_b->items[i]))
        return less(heap, list_a->items[i], list_b->items[i], symbol);
    return list_a->items.size() < list_b->items.size();
  }
  fail("'", symbol, "' not supported between instances of '", type_name(a), "' and '", type_name(b),
       "'");
}

bool contains(Heap& heap, const Value& container, const Value& item) {
  heap.step(weight(container));
  if (const auto* text = as<Text>(container)) {
    const auto* part = as<Text>(item);
    if (!part) {
      require_defined(item);
      fail("'in <string>' requires string as left operand, not ", type_name(item));
    }
    heap.step(weight(container) * (part->bytes.size() / 32));  // the search may back up
    return text->bytes.find(part->bytes) != std::string_view::npos;
  }
  if (const auto* dict = as_dict(container)) return dict_find(heap, *dict, item) != nullptr;
  if (const auto* list = as_list(container)) {
    for (const Value& element : iterate(heap, list)->items)
      if (equal(heap, element, item)) return true;
    return false;
  }
  if (is<Undefined>(container)) return false;
  fail("argument of type '", type_name(container), "' is not iterable");
}

}  // namespace slip::jinja
