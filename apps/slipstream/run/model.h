// A model ready to talk: its text side first, its weights when the prompt is known.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/generation_config.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/speculate_flags.h"
#include "text/chat_template.h"
#include "text/output_format.h"
#include "text/tokenizer.h"

namespace slip {

// A conversation as tokens.
struct ChatPrompt {
  std::vector<int32_t> ids;
  int64_t messages_end = 0;  // behind them it only says who speaks next
  bool in_thoughts = false;  // that is how the answer begins
};

class TalkingModel {
 public:
  // Reads the headers of the files, the tokenizer and the template. Neither of the latter two has
  // to be there; what needs them says so.
  static Result<TalkingModel> open(const ModelFlags& flags);

  // Loads the weights, with a context of at least `positions` if the flags name none.
  Status load(const ModelFlags& flags, const SpeculateFlags& speculation, int64_t positions);

  // The same for a conversation, which may go back to where the last message ended.
  Status load_for_chat(const ModelFlags& flags, const SpeculateFlags& speculation);

  // The same for many at once: `users` of them, 0: as many as suit the memory.
  Status load_for_many(const ModelFlags& flags, const SpeculateFlags& speculation, int64_t users,
                       const LoadProgress& progress);

  // What they would take.
  Result<MemoryPlan> plan(const ModelFlags& flags, const SpeculateFlags& speculation,
                          int64_t positions);
  Result<MemoryPlan> plan_for_many(const ModelFlags& flags, const SpeculateFlags& speculation,
                                   int64_t users);

  // A whole prompt to token ids: special tokens in it are meant.
  Result<std::vector<int32_t>> encode(const std::string& text) const;

  // A conversation as the model's template writes it: special tokens in a message are just text, or
  // a log that somebody pipes in could begin a turn of its own. `think` becomes enable_thinking;
  // without it the template decides.
  Result<ChatPrompt> prompt(const JsonArray& messages, std::optional<bool> think) const;

  const std::string& name() const { return name_; }
  const ModelSource& source() const { return source_; }
  const Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }
  const std::string& why_no_tokenizer() const { return no_tokenizer_; }
  // How it marks its thoughts and tool calls.
  const OutputFormat& output_format() const;
  const ChatTemplate* chat_template() const { return template_ ? &*template_ : nullptr; }
  const std::string& why_no_template() const { return no_template_; }
  const GenerationDefaults& defaults() const { return defaults_; }
  const Backend& backend() const { return backend_; }
  Engine& engine() const { return *engine_; }
  double load_seconds() const { return load_seconds_; }

 private:
  explicit TalkingModel(ModelSource source) : source_(std::move(source)) {}

  Status prepare(const ModelFlags& flags);
  Status load(const EngineOptions& options, const LoadProgress& progress);
  Result<EngineOptions> engine_options(const ModelFlags& flags, const SpeculateFlags& speculation,
                                       int64_t positions) const;
  Result<EngineOptions> options_for_many(const ModelFlags& flags, const SpeculateFlags& speculation,
                                         int64_t users) const;

  std::string name_;
  ModelSource source_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  std::string no_tokenizer_, no_template_;
  GenerationDefaults defaults_;
  Backend backend_;
  std::unique_ptr<Engine> engine_;
  double load_seconds_ = 0;
};

}  // namespace slip
