// completions: a script that teaches a shell our verbs and flags.
#include <cstdio>

#include "completions_script.h"
#include "verb.h"

namespace slip {
namespace {

class Completions : public Verb {
 public:
  Completions() : flags_("completions", "Print a completion script for bash, zsh or fish") {
    flags_.positional("SHELL", &shell_, "bash, zsh or fish");
    flags_.footer(
        "Examples:\n"
        "  source <(slipstream completions bash)\n"
        "  slipstream completions bash > ~/.local/share/bash-completion/completions/slipstream\n"
        "  slipstream completions fish > ~/.config/fish/completions/slipstream.fish");
  }
  Flags& flags() override { return flags_; }

  Result<int> run() override {
    std::vector<VerbToComplete> verbs;
    for (const auto& verb : make_all_verbs()) {
      const Flags& flags = verb->flags();
      verbs.push_back({flags.verb(), flags.summary(), flags.names()});
    }
    const Result<std::string> script = completion_script(shell_, verbs);
    if (!script.ok()) {
      std::fprintf(stderr, "slipstream completions: %s; see slipstream completions --help\n",
                   script.failure().message.c_str());
      return 2;
    }
    std::fputs(script.value().c_str(), stdout);
    return 0;
  }

 private:
  Flags flags_;
  std::string shell_;
};

}  // namespace

std::unique_ptr<Verb> make_completions_verb() { return std::make_unique<Completions>(); }

}  // namespace slip
