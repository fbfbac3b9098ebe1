// String building without a format library: cat("tensor ", name, " has ", 3, " rows").
#pragma once

#include <sstream>
#include <string>

namespace slip {

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

}  // namespace slip
