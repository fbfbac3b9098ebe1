// HTTP as the rest of the server sees it: a request that has passed all checks, and a reply that
// may be given later, in pieces and from another thread. http_server.h does the sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slip {

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // without the query, not decoded
  std::string query;
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string body;
  std::string id;    // for logs and x-request-id
  std::string salt;  // differs between API keys
  // What the body is counted against; given back when the last copy of the request goes.
  std::shared_ptr<const void> charge = {};
};

// What answers cost, for the log line of their request.
struct TokenUsage {
  int64_t prompt = 0, cached = 0, generated = 0;
  double decode_seconds = 0;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// One answer. Methods may be called from any thread, in the order of their declaration; what is
// written after the client has gone goes nowhere.
class HttpReply {
 public:
  virtual ~HttpReply() = default;

  // Whether nobody waits for the reply any more; work for it may be left undone.
  virtual bool client_left() const { return false; }

  // Called once, soon after the client hangs up before the reply is complete, on some thread.
  virtual void on_close(std::function<void()> callback) = 0;

  // A whole reply.
  virtual void send(int status, std::string_view content_type, std::string body,
                    const HttpHeaders& headers = {}) = 0;

  // Or one in pieces. The first call sends the head at once; a server-sent-events stream is kept
  // alive with comment lines while nothing is written.
  virtual void begin(int status, std::string_view content_type,
                     const HttpHeaders& headers = {}) = 0;
  virtual void write(std::string piece) = 0;
  virtual void end() = 0;

  // Before the last reference is dropped, which is when the request is logged; several add up.
  virtual void add_usage(const TokenUsage& /*usage*/) {}
};

std::string_view reason_phrase(int status);

using HttpHandler = std::function<void(const HttpRequest&, std::shared_ptr<HttpReply>)>;

}  // namespace slip
