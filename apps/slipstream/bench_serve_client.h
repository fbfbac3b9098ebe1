// A small HTTP client for benchmarks: blocking, one connection per request, streams of events read
// as they come.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slip {

struct ServerUrl {
  std::string host;
  std::string port = "80";
  std::string path;  // before "/v1"; without a slash at its end

  // "http://localhost:8080", with or without "/v1" behind it. https is refused: a tunnel or a proxy
  // on this machine can speak it.
  static Result<ServerUrl> parse(const std::string& text);
};

struct HttpCall {
  std::string method = "GET";
  std::string path;  // "/v1/models"
  std::string body = {};
  std::string api_key = {};
};

struct HttpResult {
  int status = 0;
  std::string body;  // whole, also of a stream
};

// `on_bytes`, if given, hears the body in pieces; false hangs up, which is no failure.
using OnBytes = std::function<bool(std::string_view piece)>;
Result<HttpResult> call_server(const ServerUrl& server, const HttpCall& call,
                               const OnBytes& on_bytes = {});

// Cuts a stream of server-sent events into the data of each.
class EventReader {
 public:
  void add(std::string_view bytes, const std::function<void(std::string_view data)>& on_data);

 private:
  std::string line_;
};

}  // namespace slip
