// String building without a format library: cat("tensor ", name, " has ", 3, " rows").
#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace slip {

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// join({"a", "b"}, ", "): "a, b".
template <class List>
std::string join(const List& list, std::string_view separator) {
  std::string joined;
  for (const auto& item : list) {
    if (!joined.empty()) joined += separator;
    joined += item;
  }
  return joined;
}

}  // namespace slip
