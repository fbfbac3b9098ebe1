// What a client is told when it does not get what it asked for.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/json.h"
#include "server/http.h"

namespace slip {

struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string message;
  std::string param{};          // the field at fault; empty: null
  std::string code{};           // empty: null
  JsonObject details{};         // further members of the error object
  int retry_after_seconds = 0;  // 0: no such header
};

// What was made, or why not.
template <class T>
using ApiResult = std::variant<T, ApiError>;
using ApiStatus = std::optional<ApiError>;

ApiError bad_request(std::string message, std::string param = "");
ApiError not_found(std::string message, std::string code = "");
ApiError too_many_requests(std::string message);
ApiError unavailable(std::string message);
ApiError not_offered(std::string message);  // 501
ApiError server_error(std::string message);

// {"error": {...}} as OpenAI's clients read it.
std::string openai_error_body(const ApiError& error);
// {"type": "error", "error": {...}} as Anthropic's clients read it.
std::string anthropic_error_body(const ApiError& error);

HttpHeaders error_headers(const ApiError& error);
void send_openai_error(HttpReply& reply, const ApiError& error);
void send_anthropic_error(HttpReply& reply, const ApiError& error);

}  // namespace slip

// SLIP_API_TRY(auto prompt, write(request)): declares `prompt`, or returns the error to the caller.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration stands in none
#define SLIP_API_TRY(declaration, expression)                                              \
  auto SLIP_CONCAT(slip_try_, __LINE__) = (expression);                                    \
  if (auto* slip_error = std::get_if<::slip::ApiError>(&SLIP_CONCAT(slip_try_, __LINE__))) \
    return std::move(*slip_error);                                                         \
  declaration = std::get<0>(std::move(SLIP_CONCAT(slip_try_, __LINE__)))
// NOLINTEND(bugprone-macro-parentheses)
