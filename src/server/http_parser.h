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
    head,
    body,  // the head is there and may be judged; there may be no body
    complete,
    refused,
  };

  // Returns how many of `bytes` were used; the others, with more behind them, must come again.
  // Stops behind the head.
  size_t feed(std::string_view bytes);

  Stage stage() const { return stage_; }
  bool keep_alive() const { return keep_alive_; }
  bool expects_continue() const { return expects_continue_; }
  // Whether the reply may come in chunks: HTTP/1.0 knows none.
  bool takes_chunks() const { return takes_chunks_; }
  bool has_body() const;

  // From the body on; the body itself when complete.
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
  HttpRequest request_;
  Refusal refusal_;
};

}  // namespace slip
