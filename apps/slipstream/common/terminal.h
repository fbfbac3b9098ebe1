// The terminal: what it can do, its modes, and the signals that come from it. Modes are always
// given back, also when a signal ends the program.
#pragma once

#include <signal.h>

#include <atomic>
#include <string_view>

#include "slipstream/common/environment.h"

namespace slip {

// What standard input, output and error are connected to.
struct Terminal {
  bool input = false, output = false, error = false;  // each is a terminal
  bool escapes = false;                               // output understands cursor movement
  bool overwrites = false;                            // and so does error
  bool colors = false;                                // and colours are wanted

  static Terminal detect(const UserEnvironment& user);
};

struct TerminalSize {
  int columns = 80, rows = 24;
};
TerminalSize terminal_size();

// Escape sequences; empty when colours are not wanted.
struct Styles {
  explicit Styles(bool colors)
      : dim(colors ? "\033[2m" : ""),
        bold(colors ? "\033[1m" : ""),
        red(colors ? "\033[31m" : ""),
        plain(colors ? "\033[0m" : "") {}

  std::string_view dim, bold, red, plain;
};

// Holds the terminal on standard input in one of two modes for as long as it lives; never in the
// usual one between them, where the terminal itself would swallow keys that are typed ahead. At
// most one at a time.
class TerminalMode {
 public:
  enum class Kind {
    editing,    // every key arrives at once, Ctrl-C and Ctrl-Z as keys; pastes are bracketed
    answering,  // nothing is echoed, so that keys do not mix with an answer; Ctrl-C is a signal
  };
  TerminalMode();  // answering
  ~TerminalMode();
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;

  void change(Kind kind);

  // Stops the program as Ctrl-Z does, with the terminal as it was, and comes back after `fg`.
  void suspend();
};

// What a program that Ctrl-C ended returns, as shells report it: 128 + SIGINT.
inline constexpr int kInterruptedStatus = 130;

// While it lives, Ctrl-C raises a flag instead of ending the program.
class InterruptScope {
 public:
  enum class Again { flag, ends_program };  // what a second Ctrl-C does
  explicit InterruptScope(Again again);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool interrupted();
  // The same, for threads that wait for something else.
  static const std::atomic<bool>& flag();
  static void reset();

 private:
  struct sigaction before_ {};
};

// A reader that goes away (`| head`) becomes a failed write instead of a signal.
void ignore_broken_pipes();

}  // namespace slip
