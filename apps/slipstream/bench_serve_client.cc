#include "bench_serve_client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/ascii.h"

namespace slip {
namespace {

constexpr int kSilenceSeconds = 300;  // a long prompt may take that long
constexpr size_t kLongestReply = 256 << 20;

class Connection {
 public:
  ~Connection() {
    if (socket_ >= 0) ::close(socket_);
  }

  Status open(const ServerUrl& server) {
    addrinfo hints{}, *places = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int code = ::getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &places))
      return error(server.host, ": ", ::gai_strerror(code));
    std::string reason = "no address";
    for (const addrinfo* place = places; place && socket_ < 0; place = place->ai_next) {
      const int candidate = ::socket(place->ai_family, place->ai_socktype | SOCK_CLOEXEC, 0);
      if (candidate >= 0 && ::connect(candidate, place->ai_addr, place->ai_addrlen) == 0) {
        socket_ = candidate;
      } else {
        reason = std::strerror(errno);
        if (candidate >= 0) ::close(candidate);
      }
    }
    ::freeaddrinfo(places);
    if (socket_ < 0) return error(server.host, " port ", server.port, ": ", reason);
    const int yes = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    const timeval patience{kSilenceSeconds, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return {};
  }

  Status send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return error("cannot send: ", std::strerror(errno));
      bytes.remove_prefix(size_t(sent));
    }
    return {};
  }

  // Empty at the end.
  Result<std::string> receive() {
    char bytes[16384];
    const ssize_t count = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (count < 0) return error("nothing comes: ", std::strerror(errno));
    return std::string(bytes, size_t(count));
  }

 private:
  int socket_ = -1;
};

// Undoes the framing of a body as its bytes come.
class BodyReader {
 public:
  explicit BodyReader(const std::string& head) {
    const std::string lower = lower_ascii(head);
    chunked_ = lower.find("\r\ntransfer-encoding: chunked") != std::string::npos;
    if (const size_t at = lower.find("\r\ncontent-length:"); !chunked_ && at != std::string::npos)
      left_ = std::strtoull(lower.c_str() + at + 17, nullptr, 10);
    done_ = left_ == 0 && !chunked_;
  }

  bool done() const { return done_; }

  // Appends the body's own bytes to `out`.
  Status add(std::string_view bytes, std::string& out) {
    if (!chunked_) {
      const size_t taken = size_t(std::min<uint64_t>(bytes.size(), left_));
      out += bytes.substr(0, taken);
      left_ -= taken;
      done_ = left_ == 0;
      return {};
    }
    pending_ += bytes;
    for (;;) {
      const size_t line = pending_.find("\r\n");
      if (line == std::string::npos) return {};
      size_t size = 0;
      const auto parsed = std::from_chars(pending_.data(), pending_.data() + line, size, 16);
      if (parsed.ec != std::errc() || size > kLongestReply) return error("a chunk without a size");
      if (pending_.size() < line + 2 + size + 2) return {};
      out.append(pending_, line + 2, size);
      pending_.erase(0, line + 2 + size + 2);
      if (size > 0) continue;
      done_ = true;
      return {};
    }
  }

 private:
  bool chunked_ = false, done_ = false;
  uint64_t left_ = UINT64_MAX;  // without a length: until the connection ends
  std::string pending_;
};

}  // namespace

Result<ServerUrl> ServerUrl::parse(const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme))
    return error("\"", text, "\" does not begin with http://, which is all this client speaks");
  std::string rest = text.substr(kScheme.size());
  ServerUrl url;
  const size_t slash = std::min(rest.find('/'), rest.size());
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (url.path.ends_with("/v1")) url.path.resize(url.path.size() - 3);
  rest.resize(slash);
  const size_t colon = rest.rfind(':');
  if (colon != std::string::npos && rest.find(']', colon) == std::string::npos) {
    url.port = rest.substr(colon + 1);
    rest.resize(colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  url.host = rest;
  if (url.host.empty()) return error("\"", text, "\" names no server");
  return url;
}

Result<HttpResult> call_server(const ServerUrl& server, const HttpCall& call,
                               const OnBytes& on_bytes) {
  Connection connection;
  SLIP_TRY_STATUS(connection.open(server));
  std::string request =
      cat(call.method, " ", server.path, call.path, " HTTP/1.1\r\nHost: ", server.host, ":",
          server.port, "\r\nConnection: close\r\n");
  if (!call.api_key.empty()) request += cat("Authorization: Bearer ", call.api_key, "\r\n");
  if (!call.body.empty())
    request += cat("Content-Type: application/json\r\nContent-Length: ", call.body.size(), "\r\n");
  SLIP_TRY_STATUS(connection.send(cat(request, "\r\n", call.body)));

  std::string head;
  size_t head_end = std::string::npos;
  while (head_end == std::string::npos) {
    SLIP_TRY(const std::string bytes, connection.receive());
    if (bytes.empty()) return error("the server hung up without an answer");
    head += bytes;
    head_end = head.find("\r\n\r\n");
    if (head.size() > kLongestReply) return error("the answer has no end of its headers");
  }
  std::string bytes = head.substr(head_end + 4);
  head.resize(head_end + 2);
  HttpResult result;
  if (head.starts_with("HTTP/1.") && head.size() > 12) result.status = std::atoi(head.c_str() + 9);
  BodyReader body(head);
  for (;;) {
    const size_t before = result.body.size();
    SLIP_TRY_STATUS(body.add(bytes, result.body));
    if (result.body.size() > kLongestReply) return error("the answer does not end");
    const std::string_view piece = std::string_view(result.body).substr(before);
    if (on_bytes && !piece.empty() && !on_bytes(piece)) return result;
    if (body.done()) return result;
    SLIP_TRY(bytes, connection.receive());
    if (bytes.empty()) return result;
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
