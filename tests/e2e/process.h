// Starts slipstream as a user does: with pipes, or in a terminal of its own.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace slip::e2e {

struct Finished {
  int status = -1;  // exit status, or 128 + the signal that ended it
  std::string out, err;

  // The one object that --json prints; a failed expectation if it is none.
  JsonObject json() const;
};

// Runs `slipstream arguments...` with `input` on its standard input.
Finished run(const std::vector<std::string>& arguments, const std::string& input = "");

// Runs a bash command line in which $SLIP is the binary.
Finished shell(const std::string& command);

// A folder that is removed again.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

// slipstream in a pseudo-terminal of 80 x 24.
class TerminalSession {
 public:
  // `environment` has further entries NAME=VALUE; HOME and XDG_STATE_HOME are `home`.
  TerminalSession(const std::vector<std::string>& arguments, const std::filesystem::path& home,
                  const std::vector<std::string>& environment = {"TERM=xterm-256color"});
  ~TerminalSession();
  TerminalSession(const TerminalSession&) = delete;
  TerminalSession& operator=(const TerminalSession&) = delete;

  void type(const std::string& keys);
  // Reads until `text` has come after everything that was waited for before; false after a while.
  bool wait_for(const std::string& text);
  // Everything so far.
  const std::string& screen() const { return screen_; }
  // The exit status, or 128 + the signal; -1 when it does not end.
  int wait_for_exit();
  void send_signal(int number) const;
  // Whether the terminal echoes and reads whole lines, as shells want it.
  bool is_restored() const;

 private:
  bool read_some(double seconds);

  pid_t child_ = -1;
  int terminal_ = -1;
  int kept_open_ = -1;  // the other end, so that its modes can be read after the child has gone
  size_t seen_ = 0;
  std::string screen_;
};

inline const std::string kEnter = "\r";
inline const std::string kCtrlC = "\x03";
inline const std::string kCtrlD = "\x04";

}  // namespace slip::e2e
