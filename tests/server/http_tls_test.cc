// HTTPS with a certificate made for the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>

#include "server/http_server.h"
#include "tests/server/http_client.h"

namespace slip {
namespace {

using testing::HasSubstr;

template <auto release>
struct Releaser {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};
template <class T, auto release>
using Owned = std::unique_ptr<T, Releaser<release>>;

// A key and a certificate that it signed itself, as files.
class SelfSigned {
 public:
  SelfSigned() {
    std::string name = (std::filesystem::temp_directory_path() / "slip-tls-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
    const Owned<X509, X509_free> certificate(X509_new());
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* subject = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(certificate.get(), subject);
    X509_sign(certificate.get(), key.get(), EVP_sha256());
    FILE* file = std::fopen(key_file().c_str(), "w");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    file = std::fopen(certificate_file().c_str(), "w");
    PEM_write_X509(file, certificate.get());
    std::fclose(file);
  }
  ~SelfSigned() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string key_file() const { return (folder_ / "key.pem").string(); }
  std::string certificate_file() const { return (folder_ / "cert.pem").string(); }

 private:
  std::filesystem::path folder_;
};

class TlsClient {
 public:
  TlsClient(uint16_t port, const std::string& trusted, int newest = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_load_verify_locations(context_.get(), trusted.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_max_proto_version(context_.get(), newest);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&place), sizeof(place)) != 0) return;
    stream_.reset(SSL_new(context_.get()));
    SSL_set_fd(stream_.get(), socket_);
    connected_ = SSL_connect(stream_.get()) == 1;
  }
  ~TlsClient() {
    stream_.reset();
    ::close(socket_);
  }
  bool connected() const { return connected_; }
  void send(const std::string& bytes) { SSL_write(stream_.get(), bytes.data(), int(bytes.size())); }
  bool wait_for(const std::string& text) {
    while (received_.find(text) == std::string::npos) {
      char bytes[4096];
      const int count = SSL_read(stream_.get(), bytes, sizeof(bytes));
      if (count <= 0) return false;
      received_.append(bytes, size_t(count));
    }
    return true;
  }
  const std::string& received() const { return received_; }

 private:
  Owned<SSL_CTX, SSL_CTX_free> context_;
  Owned<SSL, SSL_free> stream_;
  int socket_ = -1;
  bool connected_ = false;
  std::string received_;
};

HttpServer::Hooks echoing() {
  HttpServer::Hooks hooks;
  hooks.handler = [](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    reply->begin(200, "text/plain");
    reply->write("first ");
    reply->write(request.body);
    reply->end();
  };
  return hooks;
}

TEST(HttpTls, RoundTrip) {
  const SelfSigned files;
  auto server = HttpServer::start(
      {.tls_certificate = files.certificate_file(), .tls_key = files.key_file()}, echoing());
  ASSERT_TRUE(server.ok()) << server.failure().message;
  TlsClient client(server.value()->port(), files.certificate_file());
  ASSERT_TRUE(client.connected());
  client.send(post_request("/", "one"));
  EXPECT_TRUE(client.wait_for("one\r\n0\r\n\r\n"));
  // The same connection again, with a body of many records.
  const std::string large(300000, 'x');
  client.send(post_request("/", large));
  EXPECT_TRUE(client.wait_for(large + "\r\n0\r\n\r\n"));
}

TEST(HttpTls, NoticesThatTheClientLeaves) {
  const SelfSigned files;
  std::atomic<bool> left = false;
  std::shared_ptr<HttpReply> kept;
  HttpServer::Hooks hooks;
  hooks.handler = [&](const HttpRequest&, std::shared_ptr<HttpReply> reply) {
    reply->on_close([&] { left = true; });
    reply->begin(200, "text/event-stream");
    kept = std::move(reply);
  };
  auto server = HttpServer::start(
      {.tls_certificate = files.certificate_file(), .tls_key = files.key_file()}, hooks);
  ASSERT_TRUE(server.ok());
  {
    TlsClient client(server.value()->port(), files.certificate_file());
    client.send(get_request("/"));
    ASSERT_TRUE(client.wait_for("event-stream"));
  }
  const Stopwatch clock;
  while (!left && clock.seconds() < 5) ::usleep(1000);
  EXPECT_TRUE(left);
  server.value() = nullptr;
}

TEST(HttpTls, RefusesOldProtocolsAndPlainText) {
  const SelfSigned files;
  auto server = HttpServer::start(
      {.tls_certificate = files.certificate_file(), .tls_key = files.key_file(), .head_seconds = 1},
      echoing());
  ASSERT_TRUE(server.ok());
  EXPECT_FALSE(
      TlsClient(server.value()->port(), files.certificate_file(), TLS1_1_VERSION).connected());
  RawClient plain(server.value()->port());
  plain.send(get_request("/"));
  EXPECT_THAT(plain.read_all(), testing::Not(HasSubstr("HTTP/1.1")));
  RawClient silent(server.value()->port());
  EXPECT_EQ(silent.read_all(), "");
  EXPECT_TRUE(TlsClient(server.value()->port(), files.certificate_file()).connected());
}

TEST(HttpTls, SaysWhichFileIsWrong) {
  const SelfSigned files, others;
  const auto mixed = HttpServer::start(
      {.tls_certificate = files.certificate_file(), .tls_key = others.key_file()}, echoing());
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(mixed.failure().message, HasSubstr(others.key_file()));
}

}  // namespace
}  // namespace slip
