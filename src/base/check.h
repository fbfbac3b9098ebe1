// check(): for conditions that only a bug in slipstream can break. Prints and aborts, also in
// release builds. Input from outside is never checked with this; see base/result.h.
#pragma once

#include <string>

#include "base/text.h"

namespace slip {

// std::source_location, which clang 14 (our fuzzing compiler) does not have.
struct SourceLocation {
  const char* file;
  unsigned line;
  const char* function;

  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          unsigned line = __builtin_LINE(),
                                          const char* function = __builtin_FUNCTION()) {
    return {file, line, function};
  }
};

[[noreturn]] void fail_check(const std::string& message, SourceLocation where);

// Carries the caller's location through a variadic call.
struct CheckedCondition {
  bool holds;
  SourceLocation where;
  // Implicit, so that check(a == b, ...) reads as it does.
  // NOLINTNEXTLINE(google-explicit-constructor)
  CheckedCondition(bool condition, SourceLocation at = SourceLocation::current())
      : holds(condition), where(at) {}
};

template <class... Parts>
void check(CheckedCondition condition, const Parts&... parts) {
  if (!condition.holds) [[unlikely]]
    fail_check(cat(parts...), condition.where);
}

[[noreturn]] inline void unreachable(const char* what,
                                     SourceLocation where = SourceLocation::current()) {
  fail_check(cat("value outside its enum: ", what), where);
}

}  // namespace slip
