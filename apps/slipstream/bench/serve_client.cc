#include "slipstream/bench/serve_client.h"

#include "hub/client_connection.h"

namespace slip {
namespace {

constexpr NetworkLimits kLimits{.connect_seconds = 15,
                                .silence_seconds = 300};  // a long prompt may take that long
constexpr size_t kLongestReply = 256 << 20;

}  // namespace

Result<MeasuredServer> MeasuredServer::at(const std::string& url, const Access& access) {
  MeasuredServer server;
  SLIP_TRY(server.url_, Url::parse(url));
  server.path_ = server.url_.target.substr(0, server.url_.target.find('?'));
  while (server.path_.ends_with('/')) server.path_.pop_back();
  if (server.path_.ends_with("/v1")) server.path_.resize(server.path_.size() - 3);
  server.api_key_ = access.api_key;
  if (server.url_.scheme == "https") {
    SLIP_TRY(TlsContext tls, TlsContext::make(access.authorities));
    server.tls_ = std::make_unique<TlsContext>(std::move(tls));
  }
  return server;
}

Result<std::unique_ptr<ByteStream>> MeasuredServer::connect() const {
  SLIP_TRY(std::unique_ptr<Socket> socket, Socket::connect(url_.host, url_.port, kLimits, *never_));
  if (tls_) return tls_->wrap(std::move(socket), url_.host);
  return std::unique_ptr<ByteStream>(std::move(socket));
}

Result<HttpResult> MeasuredServer::call(const HttpCall& call, const OnBytes& on_bytes) const {
  SLIP_TRY(std::unique_ptr<ByteStream> stream, connect());
  ClientConnection connection(std::move(stream));
  std::string request = cat(call.method, " ", path_, call.path,
                            " HTTP/1.1\r\nHost: ", url_.authority(), "\r\nConnection: close\r\n");
  if (!api_key_.empty()) request += cat("Authorization: Bearer ", api_key_, "\r\n");
  if (!call.body.empty())
    request += cat("Content-Type: application/json\r\nContent-Length: ", call.body.size(), "\r\n");
  SLIP_TRY(const HttpReplyHead head, connection.exchange(cat(request, "\r\n", call.body)));
  HttpResult result{.status = head.status, .body = {}};
  char bytes[16 << 10];
  for (;;) {
    SLIP_TRY(const size_t count, connection.read(bytes));
    if (count == 0) return result;
    if (result.body.size() + count > kLongestReply) return error("the answer does not end");
    result.body.append(bytes, count);
    if (on_bytes) on_bytes({bytes, count});
  }
}

void EventReader::add(std::string_view bytes,
                      const std::function<void(std::string_view)>& on_data) {
  for (const char byte : bytes) {
    if (byte != '\n') {
      line_ += byte;
      continue;
    }
    std::string_view data = line_;
    if (data.ends_with('\r')) data.remove_suffix(1);
    if (data.starts_with("data:")) {
      data.remove_prefix(5);
      if (data.starts_with(' ')) data.remove_prefix(1);
      on_data(data);
    }
    line_.clear();
  }
}

}  // namespace slip
