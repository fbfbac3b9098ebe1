#include "slipstream/run/options.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "models/model_source.h"

namespace slip {
namespace {

// "org/name" or "org/name@revision"
bool looks_like_repository(const std::string& word) {
  const auto allowed = [](char byte) {
    return std::isalnum(static_cast<unsigned char>(byte)) ||
           std::string_view("-_./@").find(byte) != std::string_view::npos;
  };
  return std::count(word.begin(), word.end(), '/') == 1 && word.front() != '/' &&
         word.back() != '/' && std::all_of(word.begin(), word.end(), allowed);
}

}  // namespace

void RunOptions::add_to(Flags& flags) {
  flags.positional("MODEL", &first, "A folder or a repository id; default: minnow");
  flags.positional("PROMPT", &second,
                   "The question; without it, and with nothing piped in, a chat begins");
  model.add_to(flags);
  model.add_download_to(flags);
  flags.option("-p,--prompt", &prompt, "TEXT",
               "The question, like PROMPT, but without reading standard input");
  flags.option("--ids", &ids, "FILE",
               "File with a JSON list of token ids to continue, instead of a prompt in text");
  flags.option("-s,--system", &system, "TEXT",
               "System prompt: what the model is told before the conversation");
  flags.flag("--raw", &raw, "Continue the prompt as plain text, without the chat template");
  flags.choice("--think", &think, {"", "on", "off"},
               "Whether the model thinks before it answers; default: what its template does");
  flags.flag("--hide-thinking", &hide_thinking, "Do not show the model's thoughts");
  flags.flag("--show-thinking", &show_thinking,
             "Show the model's thoughts even when the output is no terminal");
  sampling.add_to(flags);
  speculation.add_to(flags);
  flags.flag("--json", &json, "Print one JSON object at the end instead of text");
  flags.flag("--stats", &stats, "Print the speed even when the output is no terminal");
  flags.flag("-q,--quiet", &quiet, "Print the answer only, without statistics and notes");
  flags.flag("--dry-run", &dry_run, "Print the memory that would be used, and exit");
  flags.footer(
      "Examples:\n"
      "  slipstream run                                   chat with minnow\n"
      "  slipstream run \"Tell me a story about a cat\"     one answer from minnow\n"
      "  slipstream run ~/models/Qwen3.5-35B-A3B -c 32K   chat with a model of yours\n"
      "  git diff | slipstream run DIR \"Review this:\"     the pipe follows the prompt\n"
      "  slipstream run DIR --dry-run                     will it fit?");
}

bool names_a_model(const std::string& word) {
  if (word.empty() || word == "minnow") return true;
  if (word[0] == '/' || word[0] == '.' || word[0] == '~') return true;
  std::error_code ignored;
  return looks_like_repository(word) || ModelSource::is_shape(word) ||
         std::filesystem::exists(word, ignored);
}

Status RunOptions::settle() {
  if (!first.empty()) {
    const bool have_model = !model.model.empty() || !model.repository.empty();
    if (have_model && !second.empty())
      return error("--model, MODEL and PROMPT at once are one too many; leave out --model");
    if (have_model || (second.empty() && !names_a_model(first))) {
      second = first;
    } else {
      model.model = first;
    }
    first.clear();
  }
  if (!second.empty() && !prompt.empty())
    return error("the prompt is given twice: \"", second, "\" and --prompt \"", prompt, "\"");
  if (!ids.empty() && (!prompt.empty() || !second.empty()))
    return error("--ids and a prompt exclude each other");
  if (!ids.empty() && (raw || !system.empty() || !think.empty()))
    return error("--ids goes without --raw, --system and --think: nothing is rendered");
  if (raw && (!system.empty() || !think.empty()))
    return error("--raw uses no template, so --system and --think mean nothing");
  if (hide_thinking && show_thinking)
    return error("--hide-thinking and --show-thinking exclude each other");
  SLIP_TRY_STATUS(model.check());
  SLIP_TRY_STATUS(speculation.check());
  if (ModelSource::is_shape(model.model))
    return error("\"", model.model,
                 "\" is the name of a shape, which has no weights; bench and "
                 "inspect take it, run needs a folder");
  return sampling.check();
}

PrintStyle print_style(const RunOptions& options, const Terminal& terminal) {
  PrintStyle style;
  style.styles = Styles(terminal.colors);
  style.escapes = terminal.escapes;
  style.to_terminal = terminal.output;
  style.columns = terminal.escapes ? terminal_size().columns : 0;
  const bool show = options.show_thinking || (terminal.output && !options.hide_thinking);
  if (show) style.thoughts = terminal.colors ? ThoughtStyle::dimmed : ThoughtStyle::tagged;
  return style;
}

}  // namespace slip
