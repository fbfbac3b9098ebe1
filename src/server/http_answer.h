// A whole reply as a value: what the checks before a handler answer with.
#pragma once

#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/http.h"

namespace slip {

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  HttpHeaders headers = {};
};

// In Anthropic's shape for paths under /v1/messages, in OpenAI's elsewhere.
HttpAnswer error_answer(std::string_view path, const ApiError& error);

// 404, and 405 with the methods that exist: "GET, HEAD".
HttpAnswer no_such_path(std::string_view path);
HttpAnswer wrong_method(std::string_view path, const std::string& allowed);

void send(HttpReply& reply, HttpAnswer answer);

}  // namespace slip
