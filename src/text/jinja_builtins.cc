#include "text/jinja_builtins.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

// Jinja2's sandbox has the same limit.
constexpr Int kMaxRange = 100000;

Int require_int(const Value& value) {
  require_defined(value);
  const auto integer = as_int(value);
  if (!integer) fail("'", type_name(value), "' object cannot be interpreted as an integer");
  return *integer;
}

Value make_range(Heap& heap, const Value&, const Args& args) {
  const auto& given = args.positional;
  if (given.empty() || given.size() > 3 || !args.named.empty())
    fail("range expects 1 to 3 arguments, got ", given.size() + args.named.size());
  const Int start = given.size() > 1 ? require_int(given[0]) : 0;
  const Int stop = require_int(given[given.size() > 1 ? 1 : 0]);
  const Int step = given.size() > 2 ? require_int(given[2]) : 1;
  if (step == 0) fail("range() arg 3 must not be zero");
  constexpr Int kFar = Int{1} << 100;
  if (start > kFar || start < -kFar || stop > kFar || stop < -kFar || step > kFar || step < -kFar)
    fail("range() argument too large");
  std::vector<Value> items;
  for (Int i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (static_cast<Int>(items.size()) >= kMaxRange)
      fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    heap.step();
    items.emplace_back(i);
  }
  return make_list(heap, std::move(items), ListType::range);
}

// The entries of dict() and namespace(): those of a dict, then the named ones.
template <class Add>
void for_each_entry(std::string_view callee, const Args& args, const Add& add) {
  if (args.positional.size() > 1) fail(callee, " takes at most one positional argument");
  if (!args.positional.empty()) {
    const Dict* source = as_dict(args.positional[0]);
    if (!source) fail(callee, " takes a mapping");
    for (const auto& [key, value] : source->entries) add(key, value);
  }
  for (const auto& [name, value] : args.named) add(Value(Text{name}), value);
}

Value make_namespace(Heap& heap, const Value&, const Args& args) {
  Namespace* result = heap.make<Namespace>();
  for_each_entry("namespace", args, [&](const Value& key, const Value& value) {
    const auto* name = as<Text>(key);
    if (!name) fail("the names in a namespace must be strings");
    heap.charge_bytes(sizeof(Value));
    heap.step(1 + result->attributes.size() / 8);
    result->set(name->bytes, value);
  });
  return result;
}

Value make_dict(Heap& heap, const Value&, const Args& args) {
  Dict* result = heap.make<Dict>();
  for_each_entry("dict", args, [&](const Value& key, const Value& value) {
    dict_set(heap, *result, key, value);
  });
  return static_cast<const Dict*>(result);
}

Value raise_exception(Heap& heap, const Value&, const Args& args) {
  const Parameters given(args, "raise_exception", {"message"}, 1);
  throw Failure{.message = std::string(to_text(heap, given[0])), .raised_by_template = true};
}

Value strftime_now(Heap& heap, const Value& now, const Args& args) {
  const Parameters given(args, "strftime_now", {"format"}, 1);
  const std::string format(to_text(heap, given[0]));
  const auto time = static_cast<std::time_t>(std::get<Int>(now));
  std::tm local{};
  localtime_r(&time, &local);
  std::array<char, 1024> buffer;
  return make_text(heap, std::string(buffer.data(), std::strftime(buffer.data(), buffer.size(),
                                                                  format.c_str(), &local)));
}

}  // namespace

Builtin find_global(std::string_view name) {
  if (name == "range") return make_range;
  if (name == "namespace") return make_namespace;
  if (name == "dict") return make_dict;
  if (name == "raise_exception") return raise_exception;
  if (name == "strftime_now") return strftime_now;
  return nullptr;
}

Value attribute_by_path(Heap& heap, const Value& object, const Value& path) {
  const auto* text = as<Text>(path);
  if (!text) return get_item(heap, object, path);
  Value value = object;
  for (const std::string_view part : split(text->bytes, ".", -1)) {
    const bool is_number =
        !part.empty() && part.size() < 10 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    value = is_number ? get_item(heap, value, Value(Int{std::stoi(std::string(part))}))
                      : get_item(heap, value, Text{part});
  }
  return value;
}

Parameters::Parameters(const Args& args, std::string_view callee,
                       std::initializer_list<std::string_view> names, size_t required)
    : callee_(callee), values_(names.size()) {
  if (args.positional.size() > names.size())
    fail(callee, " takes at most ", names.size(), " argument(s), got ", args.positional.size());
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail(callee, " got an unexpected keyword argument '", name, "'");
    auto& slot = values_[static_cast<size_t>(found - names.begin())];
    if (slot) fail(callee, " got multiple values for argument '", name, "'");
    slot = value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!values_[i]) fail(callee, " is missing its argument '", names.begin()[i], "'");
}

Int Parameters::integer(size_t i, Int otherwise) const {
  if (!has(i) || is<None>(*values_[i])) return otherwise;
  return require_int(*values_[i]);
}

std::optional<std::string_view> Parameters::text(size_t i) const {
  if (!has(i) || is<None>(*values_[i])) return std::nullopt;
  require_defined(*values_[i]);
  const auto* text = as<Text>(*values_[i]);
  if (!text) fail(callee_, ": expected a string, got ", type_name(*values_[i]));
  return text->bytes;
}

}  // namespace slip::jinja
