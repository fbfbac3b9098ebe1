#include "server/http_answer.h"

#include "base/text.h"

namespace slip {

HttpAnswer error_answer(std::string_view path, const ApiError& error) {
  constexpr std::string_view kMessages = "/v1/messages";
  const bool anthropic = path == kMessages || path.starts_with("/v1/messages/");
  return {.status = error.status,
          .body = anthropic ? anthropic_error_body(error) : openai_error_body(error),
          .headers = error_headers(error)};
}

HttpAnswer no_such_path(std::string_view path) {
  return error_answer(path, not_found(cat("there is no ", path), "unknown_url"));
}

HttpAnswer wrong_method(std::string_view path, const std::string& allowed) {
  HttpAnswer answer = error_answer(
      path,
      {.status = 405, .message = cat(path, " takes ", allowed), .code = "method_not_allowed"});
  answer.headers.emplace_back("Allow", allowed);
  return answer;
}

void send(HttpReply& reply, HttpAnswer answer) {
  reply.send(answer.status, answer.content_type, std::move(answer.body), answer.headers);
}

}  // namespace slip
