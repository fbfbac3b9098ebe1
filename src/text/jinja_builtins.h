// The names that templates find without defining them, and what all of them share: how arguments
// are matched to parameters.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace slip::jinja {

// Null where there is none of that name.
Builtin find_filter(std::string_view name);
Builtin find_test(std::string_view name);
Builtin find_global(std::string_view name);
Builtin find_text_method(std::string_view name);
Builtin find_dict_method(std::string_view name);
Builtin find_list_method(std::string_view name);
// strftime_now() is not among the globals, since it needs the rendering's clock.

// Attributes by path ("function.name", 0), for map(attribute=...), selectattr() and sort().
Value attribute_by_path(Heap& heap, const Value& object, const Value& path);

// Arguments by parameter, in order; missing ones are absent.
class Parameters {
 public:
  // Fails on unknown names, on too many arguments and if one of the first `required` is missing.
  Parameters(const Args& args, std::string_view callee,
             std::initializer_list<std::string_view> names, size_t required = 0);

  bool has(size_t i) const { return values_[i].has_value(); }
  const Value& operator[](size_t i) const { return *values_[i]; }
  bool flag(size_t i, bool otherwise) const { return has(i) ? truthy(*values_[i]) : otherwise; }
  // None counts as absent.
  Int integer(size_t i, Int otherwise) const;
  std::optional<std::string_view> text(size_t i) const;

 private:
  std::string_view callee_;
  std::vector<std::optional<Value>> values_;
};

// printf-style: '%s has %d' % (a, b).
std::string format_percent(Heap& heap, std::string_view format, const Value& values);
// str.format().
std::string format_braces(Heap& heap, std::string_view format, const Args& args);

}  // namespace slip::jinja
