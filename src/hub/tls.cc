#include "hub/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <filesystem>

namespace slip {
namespace {

struct FreeSsl {
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};
using Ssl = std::unique_ptr<SSL, FreeSsl>;

// OpenSSL looks where its builder kept them; a binary that travels must know where others do.
constexpr const char* kSystemAuthorities[] = {
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, Red Hat
    "/etc/ssl/ca-bundle.pem",              // openSUSE
    "/etc/ssl/cert.pem",                   // Alpine
};

std::string last_words() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  if (code == 0) return "the connection broke";
  const char* reason = ::ERR_reason_error_string(code);
  return reason ? reason : cat("error ", code);
}

bool is_address(const std::string& host) {
  in6_addr ignored;
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

class TlsStream : public ByteStream {
 public:
  TlsStream(std::unique_ptr<Socket> socket, Ssl ssl)
      : socket_(std::move(socket)), ssl_(std::move(ssl)) {}

  Status shake_hands(const std::string& host) {
    for (;;) {
      const int result = ::SSL_connect(ssl_.get());
      if (result == 1) return {};
      const long verdict = ::SSL_get_verify_result(ssl_.get());
      if (verdict != X509_V_OK)
        return error(host,
                     ": its certificate is not trusted: ", ::X509_verify_cert_error_string(verdict),
                     "; SSL_CERT_FILE may name a file with the authority that signed it");
      if (Status waited = wait_for(result); !waited.ok())
        return std::move(waited).failure().in(cat(host, ": no TLS connection"));
    }
  }

  Result<size_t> read(std::span<char> into) override {
    for (;;) {
      const int most = int(std::min<size_t>(into.size(), 1 << 30));
      const int result = ::SSL_read(ssl_.get(), into.data(), most);
      if (result > 0) return size_t(result);
      if (::SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN) return size_t(0);
      SLIP_TRY_STATUS(wait_for(result));
    }
  }

  Status write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const int result = ::SSL_write(ssl_.get(), bytes.data(), int(bytes.size()));
      if (result > 0) {
        bytes.remove_prefix(size_t(result));
      } else {
        SLIP_TRY_STATUS(wait_for(result));
      }
    }
    return {};
  }

 private:
  Status wait_for(int result) {
    switch (::SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ: return socket_->wait(Socket::Direction::reading);
      case SSL_ERROR_WANT_WRITE: return socket_->wait(Socket::Direction::writing);
      default:  // OpenSSL's numbers, not an enum of ours
        return error(last_words());
    }
  }

  std::unique_ptr<Socket> socket_;
  Ssl ssl_;  // uses the socket, so it goes first
};

}  // namespace

struct TlsContext::Context {
  SSL_CTX* handle = ::SSL_CTX_new(::TLS_client_method());
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { ::SSL_CTX_free(handle); }
};

TlsContext::TlsContext(std::unique_ptr<Context> context) : context_(std::move(context)) {}
TlsContext::TlsContext(TlsContext&&) noexcept = default;
TlsContext::~TlsContext() = default;

Result<TlsContext> TlsContext::make(const std::string& authorities) {
  auto context = std::make_unique<Context>();
  check(context->handle, "OpenSSL gives no context");
  ::SSL_CTX_set_verify(context->handle, SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_min_proto_version(context->handle, TLS1_2_VERSION);
  ::SSL_CTX_set_mode(context->handle, SSL_MODE_AUTO_RETRY | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                          SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (!authorities.empty()) {
    if (::SSL_CTX_load_verify_locations(context->handle, authorities.c_str(), nullptr) != 1) {
      ::ERR_clear_error();
      return error(authorities, ": no certificates in PEM form");
    }
    return TlsContext(std::move(context));
  }
  for (const char* place : kSystemAuthorities) {
    std::error_code ignored;
    if (!std::filesystem::exists(place, ignored)) continue;
    if (::SSL_CTX_load_verify_locations(context->handle, place, nullptr) == 1) break;
    ::ERR_clear_error();
  }
  return TlsContext(std::move(context));
}

Result<std::unique_ptr<ByteStream>> TlsContext::wrap(std::unique_ptr<Socket> socket,
                                                     const std::string& host) const {
  Ssl ssl(::SSL_new(context_->handle));
  check(bool(ssl), "OpenSSL gives no connection");
  ::SSL_set_fd(ssl.get(), socket->descriptor());
  if (is_address(host)) {
    ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl.get()), host.c_str());
  } else {
    ::SSL_set_tlsext_host_name(ssl.get(), host.c_str());
    ::SSL_set1_host(ssl.get(), host.c_str());
  }
  auto stream = std::make_unique<TlsStream>(std::move(socket), std::move(ssl));
  SLIP_TRY_STATUS(stream->shake_hands(host));
  return std::unique_ptr<ByteStream>(std::move(stream));
}

}  // namespace slip
