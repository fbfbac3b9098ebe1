#include "slipstream/chat/input.h"

#include <algorithm>

#include "base/ascii.h"

namespace slip {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

struct Spelling {
  std::string_view word;
  Command command;
};
constexpr Spelling kSpellings[] = {
    {"/help", Command::help},     {"/?", Command::help},      {"/clear", Command::clear},
    {"/system", Command::system}, {"/think", Command::think}, {"/stats", Command::stats},
    {"/save", Command::save},     {"/bye", Command::leave},   {"/exit", Command::leave},
    {"/quit", Command::leave},
};

// Single letters inserted, left out or changed between two words.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

}  // namespace

bool is_complete_message(std::string_view text) {
  const std::string_view body = trimmed(text);
  if (body.starts_with(kQuotes))
    return body.size() >= 2 * kQuotes.size() && body.ends_with(kQuotes);
  return !text.ends_with('\\');
}

std::string message_text(std::string_view typed) {
  std::string_view body = trimmed(typed);
  if (body.starts_with(kQuotes)) {
    body.remove_prefix(kQuotes.size());
    if (body.ends_with(kQuotes)) body.remove_suffix(kQuotes.size());
    return std::string(trimmed(body));
  }
  std::string text;
  for (size_t i = 0; i < body.size(); ++i)
    if (body[i] != '\\' || i + 1 == body.size() || body[i + 1] != '\n') text += body[i];
  return text;
}

bool is_command(std::string_view text) { return text.starts_with('/'); }

Result<TypedCommand> parse_command(std::string_view text) {
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view word = text.substr(0, end);
  const Spelling* nearest = nullptr;
  size_t nearest_distance = 3;
  for (const Spelling& spelling : kSpellings) {
    if (word == spelling.word)
      return TypedCommand{spelling.command, std::string(trimmed(text.substr(end)))};
    if (const size_t d = distance(word, spelling.word); d < nearest_distance) {
      nearest = &spelling;
      nearest_distance = d;
    }
  }
  return error("there is no command ", word,
               nearest ? cat("; did you mean ", nearest->word, "?") : "; /help lists them",
               " (a message may begin with a blank and then /)");
}

std::vector<std::string> command_words() {
  std::vector<std::string> words;
  for (const Spelling& spelling : kSpellings) words.emplace_back(spelling.word);
  return words;
}

std::string chat_help() {
  return R"(/clear               forget the conversation
/system TEXT         what the model is told before the conversation; none: nothing
/think on|off        whether the model thinks before it answers
/think show|hide     whether its thoughts are shown
/stats [on|off]      speed and memory; on, off: a line after every answer
/save FILE           write the conversation: FILE.json, or Markdown
/bye                 leave (also Ctrl-D)

A line that ends in \ goes on in the next one, and so does text between """ and """.
Alt-Enter begins a new line; pasted text may have several.
Ctrl-C stops an answer. Up and Down, or Ctrl-R, find what you typed before.
)";
}

}  // namespace slip
