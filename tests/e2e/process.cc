#include "tests/e2e/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "base/clock.h"
#include "base/files.h"

namespace slip::e2e {
namespace {

constexpr double kPatience = 90;  // seconds, for a machine under load

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Files instead of pipes for what comes out: nothing can block.
Finished run_program(std::vector<std::string> words, const std::string& input) {
  const TemporaryFolder folder;
  const std::string in = folder.write("in", input), out = folder.write("out", ""),
                    err = folder.write("err", "");
  std::vector<char*> argv = pointers(words);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(in.c_str(), O_RDONLY), STDIN_FILENO);
    ::dup2(::open(out.c_str(), O_WRONLY), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_WRONLY), STDERR_FILENO);
    ::alarm(unsigned(kPatience));
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return {exit_status(status), file_text(out), file_text(err)};
}

}  // namespace

JsonObject Finished::json() const {
  EXPECT_EQ(status, 0) << err;
  const Result<Json> parsed = parse_json(out, "standard output");
  EXPECT_TRUE(parsed.ok()) << out;
  return parsed.ok() && parsed.value().is_object() ? parsed.value().get_object() : JsonObject{};
}

Finished run(const std::vector<std::string>& arguments, const std::string& input) {
  std::vector<std::string> words{SLIP_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program(words, input);
}

Finished shell(const std::string& command) {
  ::setenv("SLIP", SLIP_BINARY, 1);
  return run_program({"/bin/bash", "-c", command}, "");
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "slip-e2e-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ / name, std::ios::binary) << content;
  return (path_ / name).string();
}

TerminalSession::TerminalSession(const std::vector<std::string>& arguments,
                                 const std::filesystem::path& home,
                                 const std::vector<std::string>& environment) {
  std::vector<std::string> words{SLIP_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment;
  variables.push_back("HOME=" + home.string());
  variables.push_back("XDG_STATE_HOME=" + home.string());
  std::vector<char*> argv = pointers(words), envp = pointers(variables);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 80;
  char name[256];
  child_ = ::forkpty(&terminal_, name, nullptr, &size);
  if (child_ < 0)
    throw std::runtime_error(std::string("no terminal: forkpty: ") + std::strerror(errno) +
                             "; is /dev/pts mounted?");
  if (child_ == 0) {
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  kept_open_ = ::open(name, O_RDWR | O_NOCTTY);
}

TerminalSession::~TerminalSession() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(terminal_);
  ::close(kept_open_);
}

void TerminalSession::type(const std::string& keys) {
  ASSERT_EQ(::write(terminal_, keys.data(), keys.size()), ssize_t(keys.size()));
}

bool TerminalSession::read_some(double seconds) {
  pollfd input{terminal_, POLLIN, 0};
  if (::poll(&input, 1, int(seconds * 1000)) <= 0) return false;
  char bytes[4096];
  const ssize_t count = ::read(terminal_, bytes, sizeof(bytes));
  if (count <= 0) return false;
  screen_.append(bytes, size_t(count));
  return true;
}

bool TerminalSession::wait_for(const std::string& text) {
  const Stopwatch clock;
  for (;;) {
    if (const size_t at = screen_.find(text, seen_); at != std::string::npos) {
      seen_ = at + text.size();
      return true;
    }
    if (clock.seconds() > kPatience) return false;
    read_some(0.1);
  }
}

int TerminalSession::wait_for_exit() {
  const Stopwatch clock;
  while (clock.seconds() < kPatience) {
    read_some(0.02);
    int status = 0;
    if (::waitpid(child_, &status, WNOHANG) != child_) continue;
    child_ = -1;
    while (read_some(0)) {
    }
    return exit_status(status);
  }
  return -1;
}

void TerminalSession::send_signal(int number) const { ::kill(child_, number); }

bool TerminalSession::is_restored() const {
  termios modes{};
  if (::tcgetattr(kept_open_, &modes) != 0) return false;
  constexpr tcflag_t kUsual = ECHO | ICANON | ISIG | IEXTEN;
  return (modes.c_lflag & kUsual) == kUsual && (modes.c_iflag & ICRNL) != 0;
}

}  // namespace slip::e2e
