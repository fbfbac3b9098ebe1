// Bytes of one HTTP/1.1 request into an HttpRequest, within limits. Boost.Beast reads the grammar;
// what it leaves open and attackers use is refused here.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/http.h"

namespace slip {

struct HttpLimits {
  size_t header_bytes = 64 << 10;  // request line and headers
  size_t body_bytes = 32 << 20;
};

class HttpParser {
 public:
  explicit HttpParser(const HttpLimits& limits);
  ~HttpParser();
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  enum class Stage {
    head,      // the request line and the headers are not complete
    body,      // they are, and request() has them; the body, if there is one, is not complete
    complete,  // request() has the body too
    refused,   // see refusal()
  };

  // Takes bytes in the order in which they came, and returns how many were used. The others must be
  // given again with the next call, in front of what has come since. One call takes no more than
  // the rest of the head, so that the caller may judge the request before its body is read.
  size_t feed(std::string_view bytes);

  Stage stage() const { return stage_; }
  bool keep_alive() const { return keep_alive_; }
  bool expects_continue() const { return expects_continue_; }
  // Whether the client understands a chunked reply, which HTTP/1.0 does not have.
  bool takes_chunks() const { return takes_chunks_; }
  bool has_body() const;

  // Filled from Stage::body on; its body in Stage::complete.
  HttpRequest& request() { return request_; }

  struct Refusal {
    int status = 400;
    std::string message;
  };
  const Refusal& refusal() const { return refusal_; }

 private:
  struct Beast;

  void read_head();
  void refuse(int status, std::string message);
  size_t feed_beast(std::string_view bytes);

  HttpLimits limits_;
  std::unique_ptr<Beast> beast_;
  Stage stage_ = Stage::head;
  bool keep_alive_ = false, expects_continue_ = false, takes_chunks_ = false;
  std::string head_;  // as it came, until it has been read
  HttpRequest request_;
  Refusal refusal_;
};

}  // namespace slip
