#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "slipstream/chat/line_editor.h"
#include "text/utf8.h"

namespace slip {
namespace {

void send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(size_t(written));
  }
}

}  // namespace

bool LineReader::read_keys(std::vector<KeyPress>& keys) {
  constexpr int kEscapeMilliseconds = 50;
  // Ctrl-C that came as a signal, before the terminal was in the mode for editing.
  if (InterruptScope::interrupted()) {
    InterruptScope::reset();
    keys = {{Key::interrupt, ""}};
    return true;
  }
  keys = std::exchange(ahead_, {});
  if (!keys.empty()) return true;
  if (decoder_.waiting()) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, kEscapeMilliseconds) == 0) {
      keys = decoder_.give_up_waiting();
      return true;
    }
  }
  char bytes[4096];
  const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof(bytes));
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  keys = decoder_.feed({bytes, size_t(count)});
  return true;
}

ReadLine LineReader::read() {
  mode_.change(TerminalMode::Kind::editing);
  LineEditor editor(options_, history_);
  LineScreen screen;
  const auto finish = [&](ReadLine::Kind kind) {
    send(screen.leave(editor.shown(), terminal_size()));
    mode_.change(TerminalMode::Kind::answering);
    return ReadLine{kind, editor.text()};
  };
  std::vector<KeyPress> keys;
  for (;;) {
    send(screen.draw(editor.shown(), terminal_size()));
    if (!read_keys(keys)) return finish(ReadLine::Kind::end_of_input);
    for (size_t i = 0; i < keys.size(); ++i) {
      switch (editor.press(keys[i])) {
        case LineEditor::Outcome::editing: break;
        case LineEditor::Outcome::submitted:
          ahead_.assign(keys.begin() + ptrdiff_t(i) + 1, keys.end());
          return finish(ReadLine::Kind::line);
        case LineEditor::Outcome::interrupted: return finish(ReadLine::Kind::interrupted);
        case LineEditor::Outcome::end_of_input: return finish(ReadLine::Kind::end_of_input);
        case LineEditor::Outcome::clear_screen:
          send("\033[H\033[2J");
          screen.forget();
          break;
        case LineEditor::Outcome::suspend:
          send(screen.leave(editor.shown(), terminal_size()));
          mode_.suspend();
          break;
      }
    }
  }
}

ReadLine read_plain_line(const LineEditorOptions& options) {
  std::string text;
  send(options.prompt);
  for (;;) {
    char byte = 0;
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count < 0 && errno == EINTR) {
      send("\n");
      InterruptScope::reset();
      return {ReadLine::Kind::interrupted, text};
    }
    if (count <= 0 && text.empty()) return {ReadLine::Kind::end_of_input, ""};
    if (count > 0 && byte != '\n') {
      text += byte;
      continue;
    }
    std::string valid;
    append_lossy_utf8(text, valid);
    if (count <= 0 || !options.is_complete || options.is_complete(valid))
      return {ReadLine::Kind::line, valid};
    text += '\n';
    send(options.continuation);
  }
}

}  // namespace slip
