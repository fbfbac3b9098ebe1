#include "server/api_error.h"

#include <utility>

namespace slip {
namespace {

// The names Anthropic's clients know; the others are theirs too.
std::string anthropic_type(const ApiError& error) {
  if (error.status == 503) return "overloaded_error";
  if (error.status >= 500) return "api_error";
  return error.type;
}

std::string anthropic_message(const ApiError& error) {
  // Claude Code compacts a conversation when it reads these words.
  constexpr std::string_view kTooLong = "prompt is too long: ";
  const Json* tokens = error.details.if_contains("n_prompt_tokens");
  const Json* context = error.details.if_contains("n_ctx");
  if (tokens && context)
    return cat(kTooLong, tokens->to_number<int64_t>(), " tokens > ", context->to_number<int64_t>(),
               " maximum");
  if (error.code == "context_length_exceeded") return cat(kTooLong, error.message);
  return error.param.empty() ? error.message : cat(error.param, ": ", error.message);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

ApiError bad_request(std::string message, std::string param) {
  return {.message = std::move(message), .param = std::move(param)};
}

ApiError not_found(std::string message, std::string code) {
  return {.status = 404,
          .type = "not_found_error",
          .message = std::move(message),
          .code = std::move(code)};
}

ApiError too_many_requests(std::string message) {
  return {.status = 429,
          .type = "rate_limit_error",
          .message = std::move(message),
          .code = "rate_limit_exceeded",
          .retry_after_seconds = 1};
}

ApiError unavailable(std::string message) {
  return {.status = 503,
          .type = "unavailable_error",
          .message = std::move(message),
          .code = "unavailable",
          .retry_after_seconds = 2};
}

ApiError not_offered(std::string message) {
  return {.status = 501,
          .type = "not_supported_error",
          .message = std::move(message),
          .code = "not_supported"};
}

ApiError server_error(std::string message) {
  return {.status = 500,
          .type = "server_error",
          .message = std::move(message),
          .code = "internal_error"};
}

std::string openai_error_body(const ApiError& error) {
  JsonObject inner = {{"message", error.message},
                      {"type", error.type},
                      {"param", text_or_null(error.param)},
                      {"code", text_or_null(error.code)}};
  for (const auto& [key, value] : error.details) inner[key] = value;
  return dump_json(JsonObject{{"error", std::move(inner)}});
}

std::string anthropic_error_body(const ApiError& error) {
  const std::string message = anthropic_message(error);
  return dump_json(
      JsonObject{{"type", "error"},
                 {"error", JsonObject{{"type", anthropic_type(error)}, {"message", message}}}});
}

HttpHeaders error_headers(const ApiError& error) {
  if (error.retry_after_seconds == 0) return {};
  return {{"Retry-After", std::to_string(error.retry_after_seconds)}};
}

void send_openai_error(HttpReply& reply, const ApiError& error) {
  reply.send(error.status, "application/json", openai_error_body(error), error_headers(error));
}

void send_anthropic_error(HttpReply& reply, const ApiError& error) {
  reply.send(error.status, "application/json", anthropic_error_body(error), error_headers(error));
}

}  // namespace slip
