// Values from the JSON of a request, and back for tojson.
#include <limits>

#include "text/jinja_value.h"

namespace slip::jinja {
namespace {

Json int_to_json(Int value) {
  if (value >= std::numeric_limits<int64_t>::min() && value <= std::numeric_limits<int64_t>::max())
    return static_cast<int64_t>(value);
  if (value > 0 && value <= std::numeric_limits<uint64_t>::max())
    return static_cast<uint64_t>(value);
  fail("tojson: the integer ", format_int(value), " has more than 64 bits");
}

// Python turns keys that are not strings into the JSON of their value.
std::string key_to_json(Heap& heap, const Value& key) {
  if (const auto* text = as<Text>(key)) return std::string(text->bytes);
  if (is<Int>(key) || is<double>(key)) return repr(heap, key);
  if (const auto* boolean = as<bool>(key)) return *boolean ? "true" : "false";
  if (is<None>(key)) return "null";
  fail("tojson: keys must be str, int, float, bool or None, not ", type_name(key));
}

Json list_to_json(Heap& heap, const List& list, size_t indent) {
  if (list.type != ListType::list && list.type != ListType::tuple)
    fail("Object of type ", type_name(&list), " is not JSON serializable");
  JsonArray out;
  out.reserve(list.items.size());
  for (const Value& item : list.items) out.push_back(to_json(heap, item, indent));
  return out;
}

Json dict_to_json(Heap& heap, const Dict& dict, size_t indent) {
  JsonObject out;
  for (const auto& [key, value] : dict.entries)
    out.insert_or_assign(key_to_json(heap, key), to_json(heap, value, indent));
  return out;
}

}  // namespace

Value from_json(Heap& heap, const Json& json) {
  const Heap::Descent descent(heap);
  heap.step();
  switch (json.kind()) {
    case boost::json::kind::null: return None{};
    case boost::json::kind::bool_: return json.get_bool();
    case boost::json::kind::int64: return Int{json.get_int64()};
    case boost::json::kind::uint64: return Int{json.get_uint64()};
    case boost::json::kind::double_: return json.get_double();
    case boost::json::kind::string: return Text{json_view(json.get_string())};
    case boost::json::kind::array: {
      std::vector<Value> items;
      items.reserve(json.get_array().size());
      for (const Json& item : json.get_array()) items.push_back(from_json(heap, item));
      return make_list(heap, std::move(items));
    }
    case boost::json::kind::object: {
      Dict* dict = heap.make<Dict>();
      for (const auto& member : json.get_object())
        dict_set(heap, *dict, Text{json_view(member.key())}, from_json(heap, member.value()));
      return static_cast<const Dict*>(dict);
    }
  }
  unreachable("boost::json::kind");
}

Json to_json(Heap& heap, const Value& value, size_t indent) {
  const Heap::Descent descent(heap);
  heap.step();
  heap.charge_bytes(sizeof(Json) + indent * heap.depth());
  if (is<None>(value)) return nullptr;
  if (const auto* boolean = as<bool>(value)) return *boolean;
  if (const auto* integer = as<Int>(value)) return int_to_json(*integer);
  if (const auto* real = as<double>(value)) return *real;
  if (const auto* text = as<Text>(value)) {
    heap.charge_bytes(text->bytes.size());
    return Json(boost::json::string_view(text->bytes.data(), text->bytes.size()));
  }
  if (const auto* list = as_list(value)) return list_to_json(heap, *list, indent);
  if (const auto* dict = as_dict(value)) return dict_to_json(heap, *dict, indent);
  fail("Object of type ", type_name(value), " is not JSON serializable");
}

}  // namespace slip::jinja
