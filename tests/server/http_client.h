// A client on a raw socket, for tests that send what no well-behaved client would.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace slip {

class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0,
                     in_addr_t address = htonl(INADDR_LOOPBACK)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer > 0)
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    place.sin_addr.s_addr = address;
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&place), sizeof(place)) == 0;
  }
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        received_(std::move(other.received_)) {}

  bool connected() const { return connected_; }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  // As a crashed machine does, more or less: without a goodbye.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close();
  }
  void end_writing() { ::shutdown(socket_, SHUT_WR); }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(size_t(sent));
    }
    return true;
  }

  // Waits for more bytes; false at the end and after `seconds`.
  bool receive(double seconds = 10) {
    pollfd input{socket_, POLLIN, 0};
    if (::poll(&input, 1, int(seconds * 1000)) <= 0) return false;
    char bytes[65536];
    const ssize_t count = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (count <= 0) return false;
    received_.append(bytes, size_t(count));
    return true;
  }

  // Until `text` has come; false if it does not.
  bool wait_for(std::string_view text, double seconds = 10) {
    const Stopwatch clock;
    while (received_.find(text) == std::string::npos)
      if (clock.seconds() > seconds || !receive(seconds)) return false;
    return true;
  }

  // Everything up to the end of the connection.
  std::string read_all() {
    while (receive()) {
    }
    return received_;
  }

  // Takes one reply with a Content-Length, or one in chunks (its framing kept), off what came.
  std::string read_reply() {
    if (!wait_for("\r\n\r\n")) return std::exchange(received_, "");
    const size_t head = received_.find("\r\n\r\n") + 4;
    size_t end = head;
    if (const size_t at = received_.find("Content-Length: "); at < head) {
      end = head + std::strtoul(received_.c_str() + at + 16, nullptr, 10);
    } else if (received_.find("Transfer-Encoding: chunked") < head) {
      if (!wait_for("\r\n0\r\n\r\n")) return std::exchange(received_, "");
      end = received_.find("\r\n0\r\n\r\n") + 7;
    }
    while (received_.size() < end && receive()) {
    }
    const std::string reply = received_.substr(0, end);
    received_.erase(0, end);
    return reply;
  }

  const std::string& received() const { return received_; }

 private:
  int socket_ = -1;
  bool connected_ = false;
  std::string received_;
};

// "HTTP/1.1 404 Not Found" -> 404; 0 if there is none.
inline int status_of(const std::string& reply) {
  return reply.starts_with("HTTP/1.1 ") ? std::atoi(reply.c_str() + 9) : 0;
}
inline std::string body_of(const std::string& reply) {
  const size_t head = reply.find("\r\n\r\n");
  return head == std::string::npos ? "" : reply.substr(head + 4);
}

inline std::string get_request(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}
inline std::string post_request(const std::string& path, const std::string& body,
                                const std::string& headers = "") {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}

}  // namespace slip
