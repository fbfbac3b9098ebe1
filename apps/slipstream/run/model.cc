#include "slipstream/run/model.h"

#include "base/clock.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/loading_bar.h"
#include "slipstream/common/model_flags.h"
#include "text/reasoning.h"
#include "text/special_token_guard.h"

namespace slip {
namespace {

std::string display_name(const std::filesystem::path& folder) {
  const std::filesystem::path clean = std::filesystem::absolute(folder).lexically_normal();
  // models--org--name/snapshots/<commit> in the Hugging Face cache: nobody knows it by its commit.
  const std::string repo = clean.parent_path().parent_path().filename().string();
  if (constexpr std::string_view kPrefix = "models--"; repo.starts_with(kPrefix)) {
    const size_t dashes = repo.find("--", kPrefix.size());
    if (dashes != std::string::npos)
      return repo.substr(kPrefix.size(), dashes - kPrefix.size()) + "/" + repo.substr(dashes + 2);
  }
  std::string last = clean.filename().string();
  if (!last.empty()) return last;
  return clean.parent_path().filename().string();
}

}  // namespace

Result<TalkingModel> TalkingModel::open(const ModelFlags& flags) {
  const Stopwatch clock;
  SLIP_TRY(std::filesystem::path folder, locate_model(flags.model));
  SLIP_TRY(ModelSource source, open_model(folder, flags));
  TalkingModel model(std::move(source));
  model.name_ = display_name(folder);
  SLIP_TRY(model.defaults_, read_generation_defaults(folder));
  if (Result<Tokenizer> tokenizer = Tokenizer::load(folder); tokenizer.ok()) {
    model.tokenizer_.emplace(std::move(tokenizer).value());
  } else {
    model.no_tokenizer_ = tokenizer.failure().message;
  }
  for (const std::string_view token : model.output_format().turn_ends)
    if (const auto id = model.tokenizer_ ? model.tokenizer_->find(token) : std::nullopt)
      model.defaults_.add_stop(*id);
  if (Result<ChatTemplate> chat = ChatTemplate::load(folder, model.output_format()); chat.ok()) {
    model.template_.emplace(std::move(chat).value());
  } else {
    model.no_template_ = chat.failure().message;
  }
  model.load_seconds_ = clock.seconds();
  return model;
}

Status TalkingModel::prepare(const ModelFlags& flags) {
  if (backend_.ops) return {};
  SLIP_TRY(backend_, make_backend(flags));
  return {};
}

Result<EngineOptions> TalkingModel::engine_options(const ModelFlags& flags,
                                                   const SpeculateFlags& speculation,
                                                   int64_t positions) const {
  EngineOptions options;
  SLIP_TRY(options.memory, memory_request(flags));
  options.weights = weight_choices(flags);
  speculation.apply(options);
  if (!options.memory.context && positions > kDefaultContext)
    options.memory.context = std::min(positions, source_.max_context());
  return options;
}

Result<MemoryPlan> TalkingModel::plan(const ModelFlags& flags, const SpeculateFlags& speculation,
                                      int64_t positions) {
  SLIP_TRY_STATUS(prepare(flags));
  SLIP_TRY(const EngineOptions options, engine_options(flags, speculation, positions));
  return Engine::plan(source_, options, *backend_.ops);
}

Status TalkingModel::load(const EngineOptions& options, const LoadProgress& progress) {
  const Stopwatch clock;
  SLIP_TRY(engine_, Engine::load(source_, options, *backend_.ops, *backend_.pool, progress));
  load_seconds_ += clock.seconds();
  return {};
}

Status TalkingModel::load(const ModelFlags& flags, const SpeculateFlags& speculation,
                          int64_t positions) {
  SLIP_TRY_STATUS(prepare(flags));
  SLIP_TRY(const EngineOptions options, engine_options(flags, speculation, positions));
  return load(options, loading_bar(name_));
}

Status TalkingModel::load_for_chat(const ModelFlags& flags, const SpeculateFlags& speculation) {
  SLIP_TRY_STATUS(prepare(flags));
  SLIP_TRY(EngineOptions options, engine_options(flags, speculation, 0));
  options.memory.checkpoints = 1;
  return load(options, loading_bar(name_));
}

Result<EngineOptions> TalkingModel::options_for_many(const ModelFlags& flags,
                                                     const SpeculateFlags& speculation,
                                                     int64_t users) const {
  constexpr int64_t kRememberedPerUser = 4;  // states of earlier texts
  constexpr int64_t kScoredRows = 16;        // of a prompt whose log probabilities are wanted
  SLIP_TRY(EngineOptions options, engine_options(flags, speculation, 0));
  options.memory.sequences = users;
  options.memory.checkpoints = kRememberedPerUser * users;
  // Several users have a row each, and nobody knows whose prompt comes next.
  if (users == 1) options.logit_rows = kScoredRows;
  options.memory.shared_positions = kMostSequences * kDefaultContext;
  return options;
}

Result<MemoryPlan> TalkingModel::plan_for_many(const ModelFlags& flags,
                                               const SpeculateFlags& speculation, int64_t users) {
  SLIP_TRY_STATUS(prepare(flags));
  SLIP_TRY(const EngineOptions options, options_for_many(flags, speculation, users));
  return Engine::plan(source_, options, *backend_.ops);
}

Status TalkingModel::load_for_many(const ModelFlags& flags, const SpeculateFlags& speculation,
                                   int64_t users, const LoadProgress& progress) {
  SLIP_TRY_STATUS(prepare(flags));
  SLIP_TRY(const EngineOptions options, options_for_many(flags, speculation, users));
  return load(options, progress);
}

Result<std::vector<int32_t>> TalkingModel::encode(const std::string& text) const {
  if (!tokenizer_) return error(no_tokenizer_, "; without a tokenizer only --ids works");
  std::vector<int32_t> ids = tokenizer_->encode(text);
  tokenizer_->add_bos(ids);
  return ids;
}

const OutputFormat& TalkingModel::output_format() const {
  return tokenizer_ ? output_format_of(*tokenizer_) : kQwenOutput;
}

Result<ChatPrompt> TalkingModel::prompt(const JsonArray& messages,
                                        std::optional<bool> think) const {
  if (!template_) return error(no_template_, "; without a chat template only --raw and --ids work");
  if (!tokenizer_) return error(no_tokenizer_, "; without a tokenizer only --ids works");
  const SpecialTokenGuard guard(*tokenizer_);
  Json marked = messages;
  guard.mark(marked);
  ChatTemplate::Request request;
  request.messages = std::move(marked.get_array());
  if (think) request.flags["enable_thinking"] = *think;
  SLIP_TRY(const std::string text, template_->render(request));
  ChatPrompt prompt;
  prompt.ids = guard.encode(text);
  tokenizer_->add_bos(prompt.ids);
  const std::vector<int64_t> ends = defaults_.message_ends(prompt.ids);
  if (!ends.empty()) prompt.messages_end = ends.back();
  prompt.in_thoughts = ends_in_thoughts(output_format(), text);
  return prompt;
}

}  // namespace slip
