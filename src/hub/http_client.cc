#include "hub/http_client.h"

#include <openssl/evp.h>

#include "base/ascii.h"

namespace slip {
namespace {

std::string base64(const std::string& text) {
  std::string out(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int length =
      ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(text.data()), int(text.size()));
  out.resize(size_t(length));
  return out;
}

bool matches_exception(const std::string& host, std::string_view exception) {
  if (exception == "*" || equal_ignoring_case(host, exception)) return true;
  if (exception.starts_with(".")) exception.remove_prefix(1);
  if (exception.empty()) return false;
  if (host.size() <= exception.size()) return equal_ignoring_case(host, exception);
  const std::string_view tail = std::string_view(host).substr(host.size() - exception.size());
  return equal_ignoring_case(tail, exception) && host[host.size() - exception.size() - 1] == '.';
}

std::string proxy_authorization(const Url& proxy) {
  if (proxy.user_info.empty()) return "";
  return cat("Proxy-Authorization: Basic ", base64(proxy.user_info), "\r\n");
}

// Hands out its socket again when the tunnel stands.
class BorrowedStream : public ByteStream {
 public:
  explicit BorrowedStream(ByteStream& stream) : stream_(stream) {}
  Result<size_t> read(std::span<char> into) override { return stream_.read(into); }
  Status write(std::string_view bytes) override { return stream_.write(bytes); }

 private:
  ByteStream& stream_;
};

}  // namespace

Result<std::optional<Url>> proxy_for(const Url& url, const ProxySettings& settings) {
  for (const std::string& exception : settings.except)
    if (matches_exception(url.host, exception)) return std::optional<Url>();
  std::string text = url.scheme == "https" ? settings.for_https : settings.for_http;
  if (text.empty()) return std::optional<Url>();
  if (text.find("://") == std::string::npos) text.insert(0, "http://");
  Result<Url> proxy = Url::parse(text);
  if (!proxy.ok() || proxy.value().scheme != "http")
    return error("the proxy for ", url.scheme, " must be http://[USER:PASSWORD@]HOST:PORT");
  return std::optional<Url>(std::move(proxy).value());
}

Result<std::unique_ptr<Socket>> HttpClient::open_tunnel(const Url& url, const Url& proxy) {
  SLIP_TRY(auto socket, Socket::connect(proxy.host, proxy.port, limits_, stop_));
  const std::string target = url.origin().substr(url.scheme.size() + 3);
  ClientConnection connection(std::make_unique<BorrowedStream>(*socket));
  Result<HttpReplyHead> reply =
      connection.exchange(cat("CONNECT ", target, " HTTP/1.1\r\nHost: ", target, "\r\n",
                              proxy_authorization(proxy), "\r\n"));
  if (!reply.ok()) return std::move(reply).failure().in(cat("the proxy ", proxy.authority()));
  if (const int status = reply.value().status; status / 100 != 2)
    return error("the proxy ", proxy.authority(), " does not let us through to ", target, ": ",
                 status, status == 407 ? " (it wants a name and a password)" : "");
  return socket;
}

Result<std::unique_ptr<ByteStream>> HttpClient::open_stream(const Url& url,
                                                            const std::optional<Url>& proxy) {
  if (url.scheme == "http") {
    const Url& first = proxy ? *proxy : url;
    SLIP_TRY(auto socket, Socket::connect(first.host, first.port, limits_, stop_));
    return std::unique_ptr<ByteStream>(std::move(socket));
  }
  SLIP_TRY(auto socket,
           proxy ? open_tunnel(url, *proxy) : Socket::connect(url.host, url.port, limits_, stop_));
  return tls_.wrap(std::move(socket), url.host);
}

Result<HttpReplyHead> HttpClient::get(const Url& url, const Headers& headers) {
  SLIP_TRY(const std::optional<Url> proxy, proxy_for(url, proxies_));
  const bool whole_address = proxy && url.scheme == "http";
  std::string request = cat("GET ", whole_address ? url.origin() : "", url.target,
                            " HTTP/1.1\r\nHost: ", url.authority(), "\r\n",
                            whole_address ? proxy_authorization(*proxy) : "");
  for (const auto& [name, value] : headers) request += cat(name, ": ", value, "\r\n");
  request += "\r\n";

  if (const auto last = connections_.find(current_);
      last != connections_.end() && !last->second->reusable())
    connections_.erase(last);
  current_ = url.origin();
  if (const auto kept = connections_.find(current_); kept != connections_.end()) {
    Result<HttpReplyHead> reply = kept->second->exchange(request);
    if (reply.ok()) return reply;
    connections_.erase(kept);  // the server had hung up meanwhile: a fresh one will do
  }
  SLIP_TRY(auto stream, open_stream(url, proxy));
  auto& connection = connections_[current_];
  connection = std::make_unique<ClientConnection>(std::move(stream));
  Result<HttpReplyHead> reply = connection->exchange(request);
  if (!reply.ok()) {
    connections_.erase(current_);
    return std::move(reply).failure().in(url.authority());
  }
  return reply;
}

Result<size_t> HttpClient::read(std::span<char> into) {
  const auto found = connections_.find(current_);
  check(found != connections_.end(), "a body without a reply");
  Result<size_t> count = found->second->read(into);
  if (!count.ok()) connections_.erase(found);
  return count;
}

}  // namespace slip
