// completions: a script that teaches a shell our verbs and flags.
#include <cstdio>

#include "slipstream/completions/script.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

class Completions : public Verb {
 public:
  Completions() : flags_("completions", "Print a completion script for bash, zsh or fish") {
    flags_.positional("SHELL", &shell_, "Shell to print the script for: bash, zsh or fish");
    flags_.footer(
        "Examples:\n"
        "  source <(slipstream completions bash)\n"
        "  slipstream completions bash > ~/.local/share/bash-completion/completions/slipstream\n"
        "  slipstream completions fish > ~/.config/fish/completions/slipstream.fish");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (shell_.empty()) return error("name a shell: bash, zsh or fish");
    std::vector<VerbToComplete> verbs;
    for (const auto& verb : make_all_verbs()) {
      const Flags& flags = verb->flags();
      verbs.push_back({flags.verb(), flags.summary(), flags.names()});
    }
    SLIP_TRY(script_, completion_script(shell_, verbs));
    return {};
  }

  Result<int> run() override {
    std::fputs(script_.c_str(), stdout);
    return 0;
  }

 private:
  Flags flags_;
  std::string shell_, script_;
};

}  // namespace

std::unique_ptr<Verb> make_completions_verb() { return std::make_unique<Completions>(); }

}  // namespace slip
