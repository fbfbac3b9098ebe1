// https, and proxies on the way.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "tests/hub/pull_fixture.h"
#include "tests/hub/self_signed.h"

namespace slip {
namespace {

int connect_to(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::connect(socket, reinterpret_cast<sockaddr*>(&place), sizeof(place));
  return socket;
}

// Opens tunnels on CONNECT, if the password is right.
class TunnelProxy {
 public:
  TunnelProxy() {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(place);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&place), length);
    ::listen(listener_, 64);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&place), &length);
    port_ = ntohs(place.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~TunnelProxy() {
    closing_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : tunnels_) thread.join();
    ::close(listener_);
  }
  std::string address() const { return cat("http://user:pass%3Aword@127.0.0.1:", port_); }
  std::string address_without_password() const { return cat("127.0.0.1:", port_); }
  int tunnels() const { return count_; }

 private:
  void accept_all() {
    while (!closing_) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client >= 0) tunnels_.emplace_back([this, client] { serve(client); });
    }
  }
  void serve(int client) {
    std::string head;
    char byte;
    while (!head.ends_with("\r\n\r\n") && ::recv(client, &byte, 1, 0) == 1) head += byte;
    // "user:pass:word" in base64
    if (head.find("Proxy-Authorization: Basic dXNlcjpwYXNzOndvcmQ=") == std::string::npos) {
      const std::string no = "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n";
      ::send(client, no.data(), no.size(), MSG_NOSIGNAL);
      ::close(client);
      return;
    }
    ++count_;
    const size_t colon = head.find(':');
    const int server = connect_to(uint16_t(std::strtoul(head.c_str() + colon + 1, nullptr, 10)));
    const std::string yes = "HTTP/1.1 200 Go\r\n\r\n";
    ::send(client, yes.data(), yes.size(), MSG_NOSIGNAL);
    while (!closing_ && copy_some(client, server)) {
    }
    ::close(client);
    ::close(server);
  }
  static bool copy_some(int a, int b) {
    pollfd both[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
    if (::poll(both, 2, 50) <= 0) return true;
    for (int i = 0; i < 2; ++i) {
      if (both[i].revents == 0) continue;
      char bytes[65536];
      const ssize_t count = ::recv(both[i].fd, bytes, sizeof(bytes), 0);
      if (count <= 0) return false;
      for (ssize_t at = 0; at < count;) {
        const ssize_t sent = ::send(both[1 - i].fd, bytes + at, size_t(count - at), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += sent;
      }
    }
    return true;
  }

  int listener_;
  uint16_t port_ = 0;
  std::atomic<bool> closing_{false};
  std::atomic<int> count_{0};
  std::thread acceptor_;
  std::vector<std::thread> tunnels_;
};

struct Certified {
  std::filesystem::path certificate_folder = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "slip-cert-XXXXXX").string();
    return std::filesystem::path(::mkdtemp(pattern.data()));
  }();
  SelfSigned paper{certificate_folder};
  ~Certified() {
    std::error_code ignored;
    std::filesystem::remove_all(certificate_folder, ignored);
  }
};

class PullTls : public Certified, public PullFixture {
 protected:
  PullTls() : PullFixture({.certificate = paper.certificate, .key = paper.key}) {
    request_.hub.authorities = paper.certificate;
  }
};

TEST_F(PullTls, Works) { expect_complete(); }

TEST_F(PullTls, BreaksAreSurvived) {
  std::atomic<int> breaks{0};
  hub_.on_request([&](const HubRequest& request) {
    return request.to_storage && breaks++ < 3 ? HubFault{.cut_after = 400'000} : HubFault{};
  });
  expect_complete();
}

TEST_F(PullTls, UnknownAuthoritiesAreRefused) {
  request_.hub.authorities = "";
  expect_failure({"certificate is not trusted", "SSL_CERT_FILE"});
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(PullTls, TheNameMustBeRight) {
  request_.hub.endpoint = cat("https://localhost:", hub_.port());
  expect_failure({"localhost", "certificate is not trusted"});
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(PullTls, AFileWithoutCertificatesIsRefused) {
  request_.hub.authorities = paper.key;
  expect_failure({paper.key, "no certificates"});
}

TEST_F(PullTls, ThroughAProxy) {
  const TunnelProxy proxy;
  request_.hub.proxies.for_https = proxy.address();
  expect_complete();
  EXPECT_GE(proxy.tunnels(), 2);  // to the hub and to the storage
}

TEST_F(PullTls, AProxyThatWantsAPassword) {
  const TunnelProxy proxy;
  request_.hub.proxies.for_https = proxy.address_without_password();
  expect_failure({"proxy", "407", "a name and a password"});
}

TEST_F(PullTls, NotThroughAProxyWhereThereIsAnException) {
  const TunnelProxy proxy;
  request_.hub.proxies = {.for_https = proxy.address(), .for_http = "", .except = {"127.0.0.1"}};
  expect_complete();
  EXPECT_EQ(proxy.tunnels(), 0);
}

TEST(Proxies, ChosenAsTheEnvironmentSays) {
  const ProxySettings settings{
      .for_https = "http://one:1", .for_http = "two:2", .except = {".inner.org", "plain.net"}};
  const auto chosen = [&](const char* address) {
    const auto proxy = proxy_for(Url::parse(address).value(), settings);
    return proxy.value() ? proxy.value()->host : "none";
  };
  EXPECT_EQ(chosen("https://a.org"), "one");
  EXPECT_EQ(chosen("http://a.org"), "two");
  EXPECT_EQ(chosen("https://x.inner.org"), "none");
  EXPECT_EQ(chosen("https://inner.org"), "none");
  EXPECT_EQ(chosen("https://winner.org"), "one");
  EXPECT_EQ(chosen("http://sub.plain.net"), "none");
  const ProxySettings socks{.for_https = "socks5://one:1", .for_http = "", .except = {}};
  EXPECT_FALSE(proxy_for(Url::parse("https://a.org").value(), socks).ok());
  const ProxySettings nowhere{.for_https = "http://one:1", .for_http = "", .except = {"*"}};
  EXPECT_FALSE(proxy_for(Url::parse("https://a.org").value(), nowhere).value().has_value());
}

TEST(Proxies, PlainHttpGoesThereWithItsWholeAddress) {
  StandInHub proxy;
  const ProxySettings settings{.for_https = "", .for_http = proxy.endpoint(), .except = {}};
  const auto tls = TlsContext::make("");
  const StopFlag stop;
  const NetworkLimits limits;
  HttpClient client(tls.value(), settings, limits, stop);
  const auto reply =
      client.get(Url::parse("http://hub.invalid/api/models/org/model/revision/main").value(), {});
  ASSERT_TRUE(reply.ok()) << reply.failure().message;
  EXPECT_EQ(reply.value().status, 200);
  const std::vector<HubRequest> requests = proxy.requests();
  EXPECT_EQ(requests.at(0).target, "http://hub.invalid:80/api/models/org/model/revision/main");
  EXPECT_EQ(requests.at(0).header("host"), "hub.invalid");
}

}  // namespace
}  // namespace slip
