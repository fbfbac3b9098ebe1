#include "slipstream/chat/chat.h"

#include <cstdio>
#include <set>

#include "slipstream/chat/conversation.h"
#include "slipstream/chat/input.h"
#include "slipstream/chat/line_editor.h"
#include "slipstream/common/environment.h"
#include "slipstream/common/numbers.h"
#include "slipstream/common/roofs.h"
#include "slipstream/common/setting_flags.h"
#include "slipstream/run/answer.h"
#include "slipstream/run/model.h"
#include "slipstream/run/stats.h"

namespace slip {
namespace {

class Chat {
 public:
  Chat(const RunOptions& options, const Terminal& terminal, const UserEnvironment& user,
       TalkingModel& model)
      : options_(options),
        terminal_(terminal),
        styles_(terminal.colors),
        model_(model),
        session_(model.engine()),
        drafts_(options.speculation.length()),
        history_(user.state_dir.empty() ? std::filesystem::path() : user.state_dir / "history"),
        think_(options.thinking()),
        style_(print_style(options, terminal)),
        show_stats_(!options.quiet) {
    conversation_.set_system(options.system);
    editor_.is_complete = is_complete_message;
    editor_.words = command_words();
  }

  void run() {
    const InterruptScope interrupts(InterruptScope::Again::flag);
    // A terminal without escape sequences stays as it is, and edits lines itself.
    std::optional<TerminalMode> mode;
    std::optional<LineReader> reader;
    if (terminal_.escapes) reader.emplace(editor_, history_, mode.emplace());
    bool warned = false;  // a second Ctrl-C in a row leaves
    for (;;) {
      const ReadLine read = reader ? reader->read() : read_plain_line(editor_);
      switch (read.kind) {
        case ReadLine::Kind::end_of_input: return;
        case ReadLine::Kind::interrupted:
          if (!read.text.empty()) break;
          if (warned) return;
          warned = true;
          note("Ctrl-C again or Ctrl-D leaves the chat.");
          continue;
        case ReadLine::Kind::line:
          history_.add(read.text);
          if (!take(read.text)) return;
          break;
      }
      warned = false;
    }
  }

 private:
  // False: the person leaves.
  bool take(const std::string& typed) {
    if (is_command(typed)) {
      const Result<TypedCommand> command = parse_command(typed);
      if (command.ok()) return obey(command.value());
      complain(command.failure().message);
      return true;
    }
    if (const std::string text = message_text(typed); !text.empty()) answer(text);
    return true;
  }

  bool obey(const TypedCommand& typed) {
    const std::string& argument = typed.argument;
    switch (typed.command) {
      case Command::leave: return false;
      case Command::help: std::fputs(chat_help().c_str(), stdout); break;
      case Command::clear:
        conversation_.clear();
        session_.clear();
        note("The conversation is forgotten.");
        break;
      case Command::system: set_system(argument); break;
      case Command::think: set_thinking(argument); break;
      case Command::stats: set_stats(argument); break;
      case Command::save: save(argument); break;
    }
    return true;
  }

  void set_system(const std::string& argument) {
    if (!argument.empty()) conversation_.set_system(argument == "none" ? "" : argument);
    if (conversation_.system().empty()) {
      note("The model is told nothing before the conversation.");
    } else {
      note("The model is told: " + conversation_.system());
    }
  }

  void set_thinking(const std::string& argument) {
    if (argument == "on" || argument == "off") {
      think_ = argument == "on";
    } else if (argument == "hide") {
      style_.thoughts = ThoughtStyle::hidden;
    } else if (argument == "show") {
      style_.thoughts = terminal_.colors ? ThoughtStyle::dimmed : ThoughtStyle::tagged;
    } else if (!argument.empty()) {
      return complain("/think takes on, off, show or hide");
    }
    const char* state = !think_ ? "as its template says" : *think_ ? "on" : "off";
    note(cat("Thinking is ", state, "; thoughts are ",
             style_.thoughts == ThoughtStyle::hidden ? "hidden." : "shown."));
  }

  void set_stats(const std::string& argument) {
    if (argument == "on" || argument == "off") {
      show_stats_ = argument == "on";
      return note(cat("Statistics after every answer: ", argument, "."));
    }
    if (!argument.empty()) return complain("/stats takes on, off or nothing");
    if (last_) {
      // Asked for by hand, so a measurement of half a second is no bother.
      if (!bandwidth_) bandwidth_ = measure_roofs(model_.backend(), 0.2).read_bytes_per_second;
      DecodeTraffic traffic = decode_traffic(model_.engine(), *last_);
      traffic.share_of_bandwidth = traffic.bytes_per_second / *bandwidth_;
      note(describe_stats(*last_, traffic, std::nullopt));
      note(cat("memory reads at ", describe_rate(*bandwidth_ / 1e9), " GB/s"));
    }
    note(context_line());
    std::fputs(model_.engine().memory().describe().c_str(), stdout);
  }

  void save(const std::string& argument) {
    if (argument.empty()) return complain("/save needs a file name, e.g. /save chat.md");
    if (conversation_.empty()) return complain("there is nothing to save yet");
    const Status saved = conversation_.save(argument, model_.name(), saved_.contains(argument));
    if (!saved.ok()) return complain(saved.failure().message);
    saved_.insert(argument);
    note("Saved to " + argument + ".");
  }

  // Whatever goes wrong, the chat goes on and the conversation is as it was before.
  void answer(const std::string& text) {
    conversation_.add_user(text);
    const Result<RunAnswer> made = make(conversation_.messages());
    const bool stopped = InterruptScope::interrupted();
    InterruptScope::reset();
    if (made.ok() && !made.value().empty()) {
      conversation_.add(made.value().message());
    } else {
      conversation_.take_back();
    }
    if (!made.ok()) {
      if (stopped) return note("Stopped. Up brings the question back.");
      complain(explain(made.failure()));
      return note("/clear starts anew; Up brings the question back.");
    }
    last_ = made.value().result;
    const FinishReason finish = last_->finish;
    if (stopped) {
      note(made.value().empty() ? "Stopped before an answer. Up brings the question back."
                                : "Stopped.");
    } else if (finish == FinishReason::context_full) {
      complain(cat("the context is full (", with_commas(model_.engine().context()),
                   " tokens), so the answer ends here"));
      note("/clear starts anew, /save FILE keeps what was said; --ctx makes more room.");
    } else if (made.value().empty() && finish == FinishReason::max_tokens) {
      note("--max-tokens ended the model's thoughts before an answer; /think off helps.");
    }
    if (show_stats_)
      note(describe_stats(*last_, decode_traffic(model_.engine(), *last_), std::nullopt));
    std::fputs("\n", stdout);
  }

  Result<RunAnswer> make(const JsonArray& messages) {
    SLIP_TRY(ChatPrompt prompt, model_.prompt(messages, think_));
    GenerateRequest request = options_.sampling.request(model_.defaults());
    request.prompt = std::move(prompt.ids);
    request.remember = prompt.messages_end;  // templates drop earlier thoughts
    request.drafts = drafts_ ? &*drafts_ : nullptr;
    if (terminal_.escapes) style_.columns = terminal_size().columns;  // windows change
    AnswerPrinter printer(style_, [](std::string_view piece) {
      return std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() &&
             std::fflush(stdout) == 0;
    });
    return make_answer(session_, model_.tokenizer(), request,
                       {.starts_in_thoughts = prompt.in_thoughts}, printer);
  }

  std::string context_line() const {
    return cat("context: ", with_commas(int64_t(session_.tokens().size())), " of ",
               with_commas(model_.engine().context()), " tokens used");
  }

  void note(const std::string& text) const {
    std::printf("%s%s%s\n", styles_.dim.data(), text.c_str(), styles_.plain.data());
    std::fflush(stdout);
  }
  void complain(const std::string& text) const {
    std::printf("%s%s%s\n", styles_.red.data(), text.c_str(), styles_.plain.data());
    std::fflush(stdout);
  }

  const RunOptions& options_;
  const Terminal& terminal_;
  Styles styles_;
  TalkingModel& model_;
  Session session_;
  std::optional<SoloDrafting> drafts_;
  LineHistory history_;
  LineEditorOptions editor_;
  Conversation conversation_;
  std::optional<bool> think_;
  PrintStyle style_;
  bool show_stats_;
  std::optional<GenerateResult> last_;
  std::optional<double> bandwidth_;
  std::set<std::string> saved_;
};

}  // namespace

Result<int> chat(const RunOptions& options, const Terminal& terminal) {
  ignore_broken_pipes();
  SLIP_TRY(TalkingModel model, TalkingModel::open(options.model));
  // What a chat needs is missed before gigabytes are loaded.
  const JsonArray probe{JsonObject{{"role", "user"}, {"content", "?"}}};
  SLIP_TRY([[maybe_unused]] const ChatPrompt prompt, model.prompt(probe, options.thinking()));
  SLIP_TRY_STATUS(model.load_for_chat(options.model, options.speculation));
  SLIP_TRY_STATUS(options.sampling.check_ids(model.engine().model().info().vocabulary));
  const Styles styles(terminal.colors);
  if (!options.quiet) {
    std::printf("%s%s%s%s · %s · context %s · /help shows what you can do%s\n", styles.bold.data(),
                model.name().c_str(), styles.plain.data(), styles.dim.data(),
                model.backend().description.c_str(), with_commas(model.engine().context()).c_str(),
                styles.plain.data());
    for (const std::string& warning : model.source().warnings())
      std::printf("%snote: %s%s\n", styles.dim.data(), warning.c_str(), styles.plain.data());
  }
  std::fflush(stdout);
  Chat(options, terminal, user_environment(), model).run();
  return 0;
}

}  // namespace slip
