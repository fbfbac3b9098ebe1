// Serves HTTP/1.1, plain or with TLS, on one thread of its own. What clients can make it hold, and
// for how long, is bounded by HttpServerOptions, however slow, silent, greedy or malformed they
// are. What a handler makes of a request, and replies that are sent whole, are for the handler to
// bound.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "server/http_answer.h"
#include "server/http_parser.h"

namespace slip {

// As HttpHandler, but it becomes the owner of the request and may keep it for another thread.
using HttpTaker = std::function<void(HttpRequest&&, std::shared_ptr<HttpReply>)>;

// What is known of a request when its head has been read, before its body is.
struct Admission {
  std::optional<HttpAnswer> answer = {};  // given instead of calling the handler
  HttpHeaders headers = {};               // go with any answer
};
// May set the request's salt.
using HttpCheck = std::function<Admission(HttpRequest&)>;

// One request when it is over.
struct HttpRecord {
  std::string method, path, id, client;
  int status = 0;      // 499: the client left before the end
  double seconds = 0;  // until the last reference to the reply was dropped
  TokenUsage usage = {};
};
// Called on any thread.
using HttpLog = std::function<void(const HttpRecord&)>;

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;                               // 0: any that is free
  std::string tls_certificate = {}, tls_key = {};  // PEM files; empty: plain HTTP
  HttpLimits limits = {};
  size_t queued_bytes = 4 << 20;    // of a reply, waiting for a client that reads slowly
  size_t bodies_bytes = 256 << 20;  // of all requests that are read or wait for their handler
  int connections = 1024;
  // Of one address, so that it cannot keep all others out. This machine's own may have them all: a
  // proxy here speaks for many.
  int connections_per_client = 128;
  double head_seconds = 15;   // from the first byte of a request to the end of its head
  double body_seconds = 120;  // from there to the end of its body
  double idle_seconds = 90;   // between requests
  double write_seconds = 60;  // while the client takes nothing
  double ping_seconds = 15;   // of silence in a stream of events
};

class HttpServer {
 public:
  struct Hooks {
    HttpTaker handler;  // on the server's thread: must not take long
    HttpCheck check = {};
    HttpLog log = {};
  };
  // Listens from here on.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options, Hooks hooks);
  // Closes what is open; replies may outlive it.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  int connections() const;

  // Takes no more connections, and on those that are open no more requests. True when all replies
  // have been read, false after `seconds`.
  bool drain(double seconds);

 private:
  class Core;
  explicit HttpServer(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace slip
