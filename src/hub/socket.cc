#include "hub/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/clock.h"

namespace slip {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<Addresses> look_up(const std::string& host, const std::string& port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); code != 0)
    return error("cannot find ", host, ": ", ::gai_strerror(code));
  return Addresses(found, ::freeaddrinfo);
}

}  // namespace

Result<std::unique_ptr<Socket>> Socket::connect(const std::string& host, const std::string& port,
                                                const NetworkLimits& limits, const StopFlag& stop) {
  SLIP_TRY(const Addresses addresses, look_up(host, port));
  Error last = error("cannot find ", host);
  for (const addrinfo* at = addresses.get(); at; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    std::unique_ptr<Socket> socket(new Socket(fd, limits, stop));
    int code = ::connect(fd, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (code == EINPROGRESS) {
      if (Status ready = socket->wait(Direction::writing, limits.connect_seconds); !ready.ok()) {
        last = std::move(ready).failure().in(cat("cannot reach ", host, ":", port));
        continue;
      }
      socklen_t length = sizeof(code);
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length);
    }
    if (code == 0) {
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return socket;
    }
    last = error("cannot reach ", host, ":", port, ": ", std::generic_category().message(code));
  }
  return last;
}

Socket::~Socket() { ::close(fd_); }

Status Socket::wait(Direction direction, double seconds) const {
  constexpr int kSliceMilliseconds = 100;  // how late the stop flag is seen at most
  const Stopwatch clock;
  pollfd socket{fd_, short(direction == Direction::reading ? POLLIN : POLLOUT), 0};
  while (!stop_.raised()) {
    if (::poll(&socket, 1, kSliceMilliseconds) > 0) return {};
    if (clock.seconds() > seconds) return error("nothing came for ", seconds, " seconds");
  }
  return error("stopped");
}

Result<size_t> Socket::read(std::span<char> into) {
  for (;;) {
    if (stop_.raised()) return error("stopped");
    const ssize_t count = ::recv(fd_, into.data(), into.size(), 0);
    if (count >= 0) return size_t(count);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      SLIP_TRY_STATUS(wait(Direction::reading));
    } else if (errno != EINTR) {
      return error("the connection broke: ", std::generic_category().message(errno));
    }
  }
}

Status Socket::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(size_t(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      SLIP_TRY_STATUS(wait(Direction::writing));
    } else if (errno != EINTR) {
      return error("the connection broke: ", std::generic_category().message(errno));
    }
  }
  return {};
}

}  // namespace slip
