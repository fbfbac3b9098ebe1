#include "server/http_transport.h"

#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

namespace slip {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Socket = asio::ip::tcp::socket;

void close_socket(Socket& socket) {
  error_code ignored;
  socket.shutdown(Socket::shutdown_both, ignored);
  socket.close(ignored);
}

class PlainTransport : public HttpTransport {
 public:
  explicit PlainTransport(Socket socket) : socket_(std::move(socket)) {}

  void handshake(std::function<void(bool)> done) override { done(true); }
  void read(char* into, size_t most, Done done) override {
    socket_.async_read_some(
        asio::buffer(into, most),
        [done = std::move(done)](error_code code, size_t bytes) { done(!code, bytes); });
  }
  void write(std::string_view bytes, Done done) override {
    asio::async_write(
        socket_, asio::buffer(bytes.data(), bytes.size()),
        [done = std::move(done)](error_code code, size_t written) { done(!code, written); });
  }
  void end_writing() override {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  void close() override { close_socket(socket_); }

 private:
  Socket socket_;
};

class TlsTransport : public HttpTransport, public std::enable_shared_from_this<TlsTransport> {
 public:
  TlsTransport(Socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}

  void handshake(std::function<void(bool)> done) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [done = std::move(done)](error_code code) { done(!code); });
  }
  void read(char* into, size_t most, Done done) override {
    stream_.async_read_some(
        asio::buffer(into, most),
        [done = std::move(done)](error_code code, size_t bytes) { done(!code, bytes); });
  }
  void write(std::string_view bytes, Done done) override {
    asio::async_write(
        stream_, asio::buffer(bytes.data(), bytes.size()),
        [done = std::move(done)](error_code code, size_t written) { done(!code, written); });
  }
  // Says goodbye in TLS's own words, so that nobody takes the end for a cut cable.
  void end_writing() override {
    stream_.async_shutdown([self = shared_from_this()](error_code) {});
  }
  void close() override { close_socket(stream_.next_layer()); }

 private:
  asio::ssl::stream<Socket> stream_;
};

class PlainTransports : public HttpTransports {
 public:
  std::shared_ptr<HttpTransport> make(Socket socket) override {
    return std::make_shared<PlainTransport>(std::move(socket));
  }
};

class TlsTransports : public HttpTransports {
 public:
  Status load(const std::string& certificate, const std::string& key) {
    error_code code;
    context_.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                             asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                             asio::ssl::context::no_tlsv1_1,
                         code);
    context_.use_certificate_chain_file(certificate, code);
    if (code) return error(certificate, ": no certificates in PEM form: ", code.message());
    context_.use_private_key_file(key, asio::ssl::context::pem, code);
    if (code) return error(key, ": not the private key of ", certificate, ": ", code.message());
    return {};
  }
  std::shared_ptr<HttpTransport> make(Socket socket) override {
    return std::make_shared<TlsTransport>(std::move(socket), context_);
  }

 private:
  asio::ssl::context context_{asio::ssl::context::tls_server};
};

}  // namespace

Result<std::unique_ptr<HttpTransports>> HttpTransports::plain() {
  return std::unique_ptr<HttpTransports>(std::make_unique<PlainTransports>());
}

Result<std::unique_ptr<HttpTransports>> HttpTransports::tls(const std::string& certificate,
                                                            const std::string& key) {
  auto transports = std::make_unique<TlsTransports>();
  SLIP_TRY_STATUS(transports->load(certificate, key));
  return std::unique_ptr<HttpTransports>(std::move(transports));
}

}  // namespace slip
