// TLS on top of a socket, with the other side's certificate checked. OpenSSL stays in tls.cc.
#pragma once

#include <memory>
#include <string>

#include "hub/socket.h"

namespace slip {

class TlsContext {
 public:
  // `authorities` is a file of certificates (PEM) to trust; empty: those of the system. A system
  // without any is no failure until a connection is made.
  static Result<TlsContext> make(const std::string& authorities);

  TlsContext(TlsContext&&) noexcept;
  ~TlsContext();

  // Shakes hands with `host` and checks that it is the one. May be called by several threads.
  // SIGPIPE must be ignored: OpenSSL writes to sockets as to files.
  Result<std::unique_ptr<ByteStream>> wrap(std::unique_ptr<Socket> socket,
                                           const std::string& host) const;

 private:
  struct Context;  // SSL_CTX
  explicit TlsContext(std::unique_ptr<Context> context);
  std::unique_ptr<Context> context_;
};

}  // namespace slip
