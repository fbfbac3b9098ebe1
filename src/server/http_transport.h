// The bytes below HTTP: a TCP connection, plain or with TLS. Includes Asio, so only http_*.cc may
// include it.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slip {

// All on the I/O thread. A callback that comes after close() says !ok.
class HttpTransport {
 public:
  using Done = std::function<void(bool ok, size_t bytes)>;

  virtual ~HttpTransport() = default;
  virtual void handshake(std::function<void(bool ok)> done) = 0;
  // At least one byte; !ok when the other side has ended or the connection is broken.
  virtual void read(char* into, size_t most, Done done) = 0;
  // All of them; they must stay until `done`.
  virtual void write(std::string_view bytes, Done done) = 0;
  // No more will be written; reading goes on.
  virtual void end_writing() = 0;
  virtual void close() = 0;
};

// Makes connections out of sockets; with certificate and key files (PEM) those with TLS.
class HttpTransports {
 public:
  static Result<std::unique_ptr<HttpTransports>> plain();
  static Result<std::unique_ptr<HttpTransports>> tls(const std::string& certificate,
                                                     const std::string& key);
  virtual ~HttpTransports() = default;
  virtual std::shared_ptr<HttpTransport> make(boost::asio::ip::tcp::socket socket) = 0;
};

}  // namespace slip
