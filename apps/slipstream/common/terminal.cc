#include "slipstream/common/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace slip {
namespace {

constexpr std::string_view kPasteOn = "\033[?2004h";
constexpr std::string_view kPasteOff = "\033[?2004l";

// What signal handlers need; written before `active` is raised.
struct SavedTerminal {
  termios before{};
  termios wanted{};
  std::atomic<bool> active{false};
  std::atomic<bool> pastes{false};
};
SavedTerminal saved;
std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr int kDeadlySignals[] = {SIGTERM, SIGHUP, SIGQUIT, SIGABRT,
                                  SIGSEGV, SIGBUS, SIGFPE,  SIGILL};

void write_all(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
}

// Only calls that are allowed in a signal handler.
void restore_terminal() {
  if (!saved.active.load()) return;
  if (saved.pastes.load()) write_all(kPasteOff);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved.before);
}

void apply_terminal() {
  if (!saved.active.load()) return;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved.wanted);
  if (saved.pastes.load()) write_all(kPasteOn);
}

void raise_by_default(int signal_number) {
  ::signal(signal_number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal_number);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal_number);
}

void on_deadly_signal(int signal_number) {
  restore_terminal();
  raise_by_default(signal_number);
}

void handle(int signal_number, void (*handler)(int));

void on_stop(int signal_number) {
  const int before = errno;
  restore_terminal();
  raise_by_default(signal_number);  // returns after SIGCONT
  handle(signal_number, on_stop);
  apply_terminal();
  errno = before;
}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(signal_number, &action, nullptr);
}

void on_interrupt(int) { interrupt_flag.store(true); }

}  // namespace

Terminal Terminal::detect(const UserEnvironment& user) {
  Terminal terminal;
  terminal.input = ::isatty(STDIN_FILENO);
  terminal.output = ::isatty(STDOUT_FILENO);
  terminal.error = ::isatty(STDERR_FILENO);
  const bool understands = !user.terminal.empty() && user.terminal != "dumb";
  terminal.escapes = terminal.output && understands;
  terminal.overwrites = terminal.error && understands;
  terminal.colors = terminal.escapes && !user.no_color;
  return terminal;
}

TerminalSize terminal_size() {
  winsize size{};
  TerminalSize result;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    result.columns = size.ws_col;
    result.rows = size.ws_row;
  }
  return result;
}

TerminalMode::TerminalMode() {
  if (::tcgetattr(STDIN_FILENO, &saved.before) != 0) return;  // not a terminal: nothing to do
  saved.wanted = saved.before;
  saved.active.store(true);
  for (const int number : kDeadlySignals) handle(number, on_deadly_signal);
  handle(SIGTSTP, on_stop);
  change(Kind::answering);
}

TerminalMode::~TerminalMode() {
  if (!saved.active.load()) return;
  restore_terminal();
  saved.pastes.store(false);
  saved.active.store(false);
  for (const int number : kDeadlySignals) ::signal(number, SIG_DFL);
  ::signal(SIGTSTP, SIG_DFL);
}

void TerminalMode::change(Kind kind) {
  if (!saved.active.load()) return;
  const bool editing = kind == Kind::editing;
  termios modes = saved.before;
  modes.c_lflag &= ~tcflag_t(ICANON | ECHO);
  modes.c_cc[VMIN] = 1;
  modes.c_cc[VTIME] = 0;
  if (editing) {
    modes.c_lflag &= ~tcflag_t(ISIG | IEXTEN);
    modes.c_iflag &= ~tcflag_t(IXON | ICRNL | INLCR);
  }
  saved.wanted = modes;
  if (saved.pastes.exchange(editing) && !editing) write_all(kPasteOff);
  apply_terminal();
}

void TerminalMode::suspend() { ::raise(SIGTSTP); }

InterruptScope::InterruptScope(Again again) {
  interrupt_flag.store(false);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a waiting read returns.
  action.sa_flags = again == Again::ends_program ? int(SA_RESETHAND) : 0;
  ::sigaction(SIGINT, &action, &before_);
}

InterruptScope::~InterruptScope() { ::sigaction(SIGINT, &before_, nullptr); }

bool InterruptScope::interrupted() { return interrupt_flag.load(); }
const std::atomic<bool>& InterruptScope::flag() { return interrupt_flag; }
void InterruptScope::reset() { interrupt_flag.store(false); }

void ignore_broken_pipes() { ::signal(SIGPIPE, SIG_IGN); }

}  // namespace slip
