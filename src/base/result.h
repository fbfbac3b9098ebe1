// Failures that a file, a user or a client can cause travel as Result values. What only a bug in
// slipstream can cause stops the program through check() in base/check.h.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/text.h"

namespace slip {

// A message for a person: what was expected, what was found, what to do.
struct Error {
  std::string message;
  // What the caller could set to another value ("context"), or null. Only a program knows how its
  // users set it, so the message does not say.
  const char* setting = nullptr;

  // "outer: inner", for callers that know which file or request the failure belongs to.
  Error in(const std::string& context) && { return Error{context + ": " + message, setting}; }
  Error about(const char* what) && { return Error{std::move(message), what}; }
};

template <class... Parts>
Error error(const Parts&... parts) {
  return Error{cat(parts...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that a value or an Error is returned as it is.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<1>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error failure) : state_(std::in_place_index<0>, std::move(failure)) {}

  bool ok() const { return state_.index() == 1; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    require_ok();
    return std::get<1>(state_);
  }
  const T& value() const& {
    require_ok();
    return std::get<1>(state_);
  }
  T&& value() && {
    require_ok();
    return std::get<1>(std::move(state_));
  }

  const Error& failure() const& { return std::get<0>(state_); }
  Error&& failure() && { return std::get<0>(std::move(state_)); }

 private:
  void require_ok() const {
    check(ok(), "Result::value() on a failure: ", ok() ? "" : std::get<0>(state_).message);
  }

  std::variant<Error, T> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Result(Error failure) : failure_(std::move(failure)) {}

  bool ok() const { return !failure_.has_value(); }
  explicit operator bool() const { return ok(); }

  const Error& failure() const& { return *failure_; }
  Error&& failure() && { return *std::move(failure_); }

 private:
  std::optional<Error> failure_;
};

using Status = Result<void>;

}  // namespace slip

#define SLIP_CONCAT_INNER(a, b) a##b
#define SLIP_CONCAT(a, b) SLIP_CONCAT_INNER(a, b)

// SLIP_TRY(auto header, read_header(path)): declares `header`, or returns the failure to the
// caller. A declaration stands in no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define SLIP_TRY(declaration, expression)                         \
  auto SLIP_CONCAT(slip_try_, __LINE__) = (expression);           \
  if (!SLIP_CONCAT(slip_try_, __LINE__).ok())                     \
    return std::move(SLIP_CONCAT(slip_try_, __LINE__)).failure(); \
  declaration = std::move(SLIP_CONCAT(slip_try_, __LINE__)).value()
// NOLINTEND(bugprone-macro-parentheses)

// SLIP_TRY_STATUS(check_shapes()): the same for a Status.
#define SLIP_TRY_STATUS(expression)                         \
  do {                                                      \
    if (auto slip_status = (expression); !slip_status.ok()) \
      return std::move(slip_status).failure();              \
  } while (false)
