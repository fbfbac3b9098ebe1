// One connection to one HTTP/1.1 server: a request, its reply, the next request.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "hub/http_reply.h"
#include "hub/socket.h"

namespace slip {

class ClientConnection {
 public:
  explicit ClientConnection(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}

  // Sends a request without a body and reads the head of the reply.
  Result<HttpReplyHead> exchange(const std::string& request);

  // Some of the reply's body; 0 at its end. A connection that ends before the body is a failure.
  Result<size_t> read(std::span<char> into);

  // Whether the reply was read to its end and another request may follow.
  bool reusable() const { return reusable_ && framing_ == Framing::none; }

 private:
  enum class Framing { none, length, chunks, until_close };

  Status read_more();
  Result<std::string> read_line();
  void choose_framing(const HttpReplyHead& head);
  Result<size_t> take(std::span<char> into);
  Status begin_chunk();

  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;  // came, not yet used
  Framing framing_ = Framing::none;
  uint64_t left_ = 0;  // of the body, or of the chunk
  bool reusable_ = true;
};

}  // namespace slip
