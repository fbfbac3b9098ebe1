// Methods of str, dict and list.
#include <algorithm>
#include <array>

#include "text/jinja_builtins.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

std::string_view text_of(const Value& subject) { return std::get<Text>(subject).bytes; }

Value text_list(Heap& heap, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.emplace_back(Text{part});
  return make_list(heap, std::move(items));
}

// A naive search may back up by the length of what it looks for.
void charge_search(Heap& heap, std::string_view text, std::string_view part) {
  heap.step((1 + text.size() / 32) * (1 + part.size() / 32));
}

int64_t small(Int value) { return static_cast<int64_t>(std::clamp<Int>(value, -1, Int{1} << 40)); }

template <Side side>
Value strip_method(Heap&, const Value& subject, const Args& args) {
  const Parameters given(args, "strip", {"chars"});
  return Text{strip(text_of(subject), given.text(0), side)};
}

template <bool from_right>
Value split_method(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "split", {"sep", "maxsplit"});
  const auto separator = given.text(0);
  if (separator && separator->empty()) fail("empty separator");
  charge_search(heap, text_of(subject), separator.value_or(""));
  const int64_t limit = small(given.integer(1, -1));
  return text_list(heap, from_right ? split_from_right(text_of(subject), separator, limit)
                                    : split(text_of(subject), separator, limit));
}

Value splitlines(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "splitlines", {"keepends"});
  return text_list(heap, split_lines(text_of(subject), given.flag(0, false)));
}

template <bool last>
Value partition(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "partition", {"sep"}, 1);
  const std::string_view text = text_of(subject);
  const std::string_view separator = given.text(0).value_or("");
  if (separator.empty()) fail("empty separator");
  charge_search(heap, text, separator);
  const size_t at = last ? text.rfind(separator) : text.find(separator);
  std::vector<Value> parts;
  if (at != std::string_view::npos) {
    parts = {Text{text.substr(0, at)}, Text{separator}, Text{text.substr(at + separator.size())}};
  } else if (last) {
    parts = {Text{""}, Text{""}, Text{text}};
  } else {
    parts = {Text{text}, Text{""}, Text{""}};
  }
  return make_list(heap, std::move(parts), ListType::tuple);
}

// The part that optional start and end arguments select, and how many characters lie before it.
struct Window {
  std::string_view text;
  Int begin = 0;
  bool valid = true;  // false: start lies behind the end of the text
};

Window window_of(std::string_view text, const Parameters& given) {
  if (!given.has(1) && !given.has(2)) return {text};
  const std::vector<std::string_view> characters = characters_of(text);
  const auto count = static_cast<Int>(characters.size());
  const auto place = [&](Int index) {
    return std::max<Int>(index < 0 ? std::max(index, -count) + count : index, 0);
  };
  const Int begin = place(given.integer(1, 0));
  const Int end = std::min(place(given.integer(2, count)), count);
  if (begin > count || begin > end) return {{}, begin, false};
  size_t first = 0;
  for (Int i = 0; i < begin; ++i) first += characters[static_cast<size_t>(i)].size();
  size_t size = 0;
  for (Int i = begin; i < end; ++i) size += characters[static_cast<size_t>(i)].size();
  return {text.substr(first, size), begin};
}

template <bool at_end>
Value has_affix(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, at_end ? "endswith" : "startswith", {"affix", "start", "end"}, 1);
  const Window window = window_of(text_of(subject), given);
  const auto matches = [&](const Value& affix) {
    require_defined(affix);
    const auto* text = as<Text>(affix);
    if (!text)
      fail(at_end ? "endswith" : "startswith", " first arg must be str or a tuple of str, not ",
           type_name(affix));
    heap.step(1 + text->bytes.size() / 32);
    return window.valid &&
           (at_end ? window.text.ends_with(text->bytes) : window.text.starts_with(text->bytes));
  };
  const List* several = as_list(given[0]);
  if (!several || several->type != ListType::tuple) return matches(given[0]);
  return std::any_of(several->items.begin(), several->items.end(), matches);
}

template <bool last, bool must_exist>
Value find_method(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, must_exist ? "index" : "find", {"sub", "start", "end"}, 1);
  const Window window = window_of(text_of(subject), given);
  const std::string_view part = given.text(0).value_or("");
  charge_search(heap, window.text, part);
  const size_t at = !window.valid ? std::string_view::npos
                    : last        ? window.text.rfind(part)
                                  : window.text.find(part);
  if (at != std::string_view::npos)
    return window.begin + static_cast<Int>(count_characters(window.text.substr(0, at)));
  if (must_exist) fail("substring not found");
  return Int{-1};
}

Value count_method(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "count", {"sub", "start", "end"}, 1);
  const Window window = window_of(text_of(subject), given);
  const std::string_view part = given.text(0).value_or("");
  charge_search(heap, window.text, part);
  return window.valid ? Int(count_occurrences(window.text, part)) : Int{0};
}

Value replace_method(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "replace", {"old", "new", "count"}, 2);
  const std::string_view text = text_of(subject);
  const std::string_view from = given.text(0).value_or("");
  const std::string_view to = given.text(1).value_or("");
  const int64_t limit = small(given.integer(2, -1));
  charge_search(heap, text, from);
  size_t count = count_occurrences(text, from);
  if (limit >= 0) count = std::min(count, static_cast<size_t>(limit));
  heap.charge_bytes(text.size() + count * to.size());
  return make_text(heap, replace_all(text, from, to, limit));
}

Value join_method(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "join", {"iterable"}, 1);
  std::string out;
  bool first = true;
  for (const Value& item : iterate(heap, given[0])->items) {
    require_defined(item);
    const auto* text = as<Text>(item);
    if (!text) fail("sequence item: expected str instance, ", type_name(item), " found");
    heap.charge_bytes(text->bytes.size() + text_of(subject).size());
    if (!first) out += text_of(subject);
    first = false;
    out += text->bytes;
  }
  return make_text(heap, std::move(out));
}

using CaseMapping = std::string (*)(std::string_view);

template <CaseMapping map_case>
Value case_method(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "the method", {});
  return make_text(heap, map_case(text_of(subject)));
}

template <bool at_end>
Value remove_affix(Heap&, const Value& subject, const Args& args) {
  const Parameters given(args, at_end ? "removesuffix" : "removeprefix", {"affix"}, 1);
  std::string_view text = text_of(subject);
  const std::string_view affix = given.text(0).value_or("");
  if (at_end && text.ends_with(affix)) text.remove_suffix(affix.size());
  if (!at_end && text.starts_with(affix)) text.remove_prefix(affix.size());
  return Text{text};
}

Value is_digits(Heap&, const Value& subject, const Args&) {
  const std::string_view text = text_of(subject);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Value is_all_space(Heap&, const Value& subject, const Args&) {
  const std::string_view text = text_of(subject);
  return !text.empty() && leading_space(text) == text.size();
}

template <CaseMapping map_case>
Value is_in_case(Heap&, const Value& subject, const Args&) {
  const std::string_view text = text_of(subject);
  return has_letters(text) && map_case(text) == text;
}

Value format_method(Heap& heap, const Value& subject, const Args& args) {
  return make_text(heap, format_braces(heap, text_of(subject), args));
}

Value dict_get(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "get", {"key", "default"}, 1);
  const Value* found = dict_find(heap, *as_dict(subject), given[0]);
  if (found) return *found;
  return given.has(1) ? given[1] : Value(None{});
}

template <ListType type>
Value dict_view(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "the method", {});
  std::vector<Value> items;
  for (const auto& [key, value] : as_dict(subject)->entries)
    items.push_back(type == ListType::keys     ? key
                    : type == ListType::values ? value
                                               : make_pair_of(heap, key, value));
  return make_list(heap, std::move(items), type);
}

// Nothing can change the original or the copy.
Value copy(Heap&, const Value& subject, const Args&) { return subject; }

Value list_index(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "index", {"value"}, 1);
  const List& list = *as_list(subject);
  for (size_t i = 0; i < list.items.size(); ++i)
    if (equal(heap, list.items[i], given[0])) return Int(i);
  fail(repr(heap, given[0]), " is not in list");
}

Value list_count(Heap& heap, const Value& subject, const Args& args) {
  const Parameters given(args, "count", {"value"}, 1);
  Int count = 0;
  for (const Value& item : as_list(subject)->items) count += equal(heap, item, given[0]);
  return count;
}

template <size_t N>
Builtin find_in(const std::array<std::pair<std::string_view, Builtin>, N>& table,
                std::string_view name) {
  for (const auto& [known, method] : table)
    if (known == name) return method;
  return nullptr;
}

}  // namespace

Builtin find_text_method(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Builtin>, 28> kMethods = {{
      {"strip", strip_method<Side::both>},
      {"lstrip", strip_method<Side::left>},
      {"rstrip", strip_method<Side::right>},
      {"split", split_method<false>},
      {"rsplit", split_method<true>},
      {"splitlines", splitlines},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"startswith", has_affix<false>},
      {"endswith", has_affix<true>},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"find", find_method<false, false>},
      {"rfind", find_method<true, false>},
      {"index", find_method<false, true>},
      {"rindex", find_method<true, true>},
      {"count", count_method},
      {"replace", replace_method},
      {"join", join_method},
      {"format", format_method},
      {"upper", case_method<to_upper>},
      {"lower", case_method<to_lower>},
      {"title", case_method<title_case>},
      {"capitalize", case_method<capitalize>},
      {"isdigit", is_digits},
      {"isspace", is_all_space},
      {"isupper", is_in_case<to_upper>},
      {"islower", is_in_case<to_lower>},
  }};
  return find_in(kMethods, name);
}

Builtin find_dict_method(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Builtin>, 5> kMethods = {{
      {"get", dict_get},
      {"items", dict_view<ListType::items>},
      {"keys", dict_view<ListType::keys>},
      {"values", dict_view<ListType::values>},
      {"copy", copy},
  }};
  return find_in(kMethods, name);
}

Builtin find_list_method(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Builtin>, 3> kMethods = {{
      {"index", list_index},
      {"count", list_count},
      {"copy", copy},
  }};
  return find_in(kMethods, name);
}

}  // namespace slip::jinja
