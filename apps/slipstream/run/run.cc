// run: one answer, or a chat.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "slipstream/chat/chat.h"
#include "slipstream/common/environment.h"
#include "slipstream/eval/eval.h"
#include "slipstream/pull/model.h"
#include "slipstream/run/once.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

// All of standard input. When nothing comes for a while, say what we are waiting for: a forgotten
// pipe would otherwise look like a hang.
std::string read_piped_text(bool quiet) {
  constexpr int kPatienceMilliseconds = 2000;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, kPatienceMilliseconds) == 0 && !quiet)
    std::fputs("note: waiting for text on standard input; </dev/null for none\n", stderr);
  return read_stdin();
}

class Run : public Verb {
 public:
  Run() : flags_("run", "Chat with a model, or ask it one question") { options_.add_to(flags_); }
  Flags& flags() override { return flags_; }

  Status settle() override { return options_.settle(); }

  Result<int> run() override {
    SLIP_TRY_STATUS(fetch_model(options_.model));
    // A mistyped model is not taken for a missing prompt, nor waits for one.
    SLIP_TRY([[maybe_unused]] const auto folder, locate_model(options_.model.model));
    const Terminal terminal = Terminal::detect(user_environment());
    if (options_.dry_run) return print_plan(options_);
    if (!options_.ids.empty()) return answer_once(options_, "", terminal);

    std::string prompt = options_.prompt.empty() ? options_.second : options_.prompt;
    if (options_.prompt.empty() && !terminal.input) {
      const std::string piped = read_piped_text(options_.quiet);
      const bool both = !prompt.empty() && !piped.empty();
      prompt += (both ? "\n\n" : "") + piped;
    }
    if (!prompt.empty()) return answer_once(options_, prompt, terminal);
    if (!terminal.input || !terminal.output || options_.json || options_.raw) {
      std::fputs(
          "slipstream run: there is no prompt; give one as PROMPT, --prompt, --ids or on standard "
          "input (a chat needs a terminal); see slipstream run --help\n",
          stderr);
      return 2;
    }
    return chat(options_, terminal);
  }

 private:
  Flags flags_;
  RunOptions options_;
};

}  // namespace

std::unique_ptr<Verb> make_run_verb() { return std::make_unique<Run>(); }

}  // namespace slip
