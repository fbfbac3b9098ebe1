#include "slipstream/serve/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/check.h"

namespace slip {

StopSignals::StopSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // A log that nobody reads any more must not end the server.
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  wakeups_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  check(signals_ >= 0 && wakeups_ >= 0, "no file descriptors for signals");
}

StopSignals::~StopSignals() {
  ::close(signals_);
  ::close(wakeups_);
}

StopSignals::Event StopSignals::wait(double seconds) {
  std::array<pollfd, 2> sources{pollfd{signals_, POLLIN, 0}, pollfd{wakeups_, POLLIN, 0}};
  const int timeout = seconds < 0 ? -1 : int(seconds * 1000);
  int ready = 0;
  do ready = ::poll(sources.data(), sources.size(), timeout);
  while (ready < 0 && errno == EINTR);
  signalfd_siginfo info;
  if (::read(signals_, &info, sizeof(info)) == sizeof(info)) return Event::signal;
  uint64_t count;
  if (::read(wakeups_, &count, sizeof(count)) == sizeof(count)) return Event::woken;
  return Event::none;
}

void StopSignals::wake() {
  const uint64_t one = 1;
  check(::write(wakeups_, &one, sizeof(one)) == sizeof(one), "cannot wake the main thread");
}

}  // namespace slip
