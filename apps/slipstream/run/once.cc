#include "slipstream/run/once.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "slipstream/common/roofs.h"
#include "slipstream/eval/eval.h"
#include "slipstream/run/answer.h"
#include "slipstream/run/model.h"
#include "slipstream/run/stats.h"

namespace slip {
namespace {

// Room for an answer of unknown length behind a prompt that does not fit the usual context.
constexpr int64_t kAnswerRoom = 2048;

// So many wrong drafts in a row are no accident.
constexpr int64_t kTellingDrafts = 24;

struct Prompt {
  std::vector<int32_t> ids;
  RunAnswerOptions parse;
};

Result<Prompt> make_prompt(const RunOptions& options, const TalkingModel& model,
                           const std::string& text) {
  Prompt prompt;
  prompt.parse.plain_text = options.raw || !options.ids.empty();
  if (!options.ids.empty()) {
    SLIP_TRY(prompt.ids, read_ids(options.ids));
    return prompt;
  }
  if (options.raw) {
    SLIP_TRY(prompt.ids, model.encode(text));
    return prompt;
  }
  JsonArray messages;
  if (!options.system.empty())
    messages.push_back(JsonObject{{"role", "system"}, {"content", options.system}});
  messages.push_back(JsonObject{{"role", "user"}, {"content", text}});
  SLIP_TRY(ChatPrompt chat, model.prompt(messages, options.thinking()));
  prompt.ids = std::move(chat.ids);
  prompt.parse.starts_in_thoughts = chat.in_thoughts;
  return prompt;
}

JsonArray json_list(const std::vector<int32_t>& ids) {
  JsonArray list;
  for (const int32_t id : ids) list.emplace_back(id);
  return list;
}

JsonObject report(const RunAnswer& answer, const TalkingModel& model,
                  const GenerateRequest& request) {
  const GenerateResult& result = answer.result;
  const DecodeTraffic traffic = decode_traffic(model.engine(), result);
  JsonObject object{{"text", result.text},
                    {"token_ids", json_list(result.ids)},
                    {"finish_reason", name_of(result.finish)},
                    {"content", answer.content},
                    {"reasoning", answer.reasoning}};
  if (!answer.tool_calls.empty()) object["tool_calls"] = answer.tool_calls;
  object["timings"] = stats_json(result, traffic, model.load_seconds());
  object["drafted"] = result.drafts.drafted;
  object["accepted"] = result.drafts.accepted;
  object["steps"] = result.drafts.steps;
  object["acceptance"] = acceptance_list(result.drafts);
  object["seed"] = request.sampling.seed;
  object["temperature"] = request.sampling.temperature;
  object["context"] = model.engine().context();
  object["model"] = model.name();
  object["backend"] = model.backend().description;
  return object;
}

// What a person must know who sees only the answer.
void print_notes(const RunAnswer& answer, const TalkingModel& model, const SpeculateFlags& flags) {
  for (const std::string& warning : model.source().warnings())
    std::fprintf(stderr, "note: %s\n", warning.c_str());
  if (const std::string why = why_no_drafts(model.source(), flags); !why.empty())
    std::fprintf(stderr, "note: %s\n", why.c_str());
  const DraftCounts& drafts = answer.result.drafts;
  if (drafts.drafted >= kTellingDrafts && drafts.accepted == 0)
    std::fprintf(stderr,
                 "note: none of %lld drafts was right; does the MTP layer belong to this model? "
                 "--speculate off saves the time\n",
                 static_cast<long long>(drafts.drafted));
  const char* cut = nullptr;
  if (answer.result.finish == FinishReason::max_tokens) cut = "--max-tokens";
  if (answer.result.finish == FinishReason::context_full) cut = "the end of the context";
  if (cut && answer.empty() && !answer.reasoning.empty())
    std::fprintf(stderr,
                 "note: %s cut the model off in its thoughts, so there is no answer; allow more "
                 "tokens, or use --think off\n",
                 cut);
  else if (!cut && answer.empty() && model.tokenizer() && !InterruptScope::interrupted())
    std::fprintf(stderr, "note: the model ended its answer before its first word\n");
  else if (answer.result.finish == FinishReason::context_full)
    std::fprintf(stderr,
                 "note: the context is full (%lld tokens), the answer ends here; --ctx takes up to "
                 "%lld\n",
                 static_cast<long long>(model.engine().context()),
                 static_cast<long long>(model.engine().memory().max_context));
}

}  // namespace

Result<int> answer_once(const RunOptions& options, const std::string& text,
                        const Terminal& terminal) {
  ignore_broken_pipes();
  SLIP_TRY(TalkingModel model, TalkingModel::open(options.model));
  SLIP_TRY(const Prompt prompt, make_prompt(options, model, text));
  GenerateRequest request = options.sampling.request(model.defaults());
  request.prompt = prompt.ids;
  const int64_t room = request.max_tokens >= 0 ? request.max_tokens : kAnswerRoom;
  SLIP_TRY_STATUS(
      model.load(options.model, options.speculation, int64_t(prompt.ids.size()) + room));
  SLIP_TRY_STATUS(options.sampling.check_ids(model.engine().model().info().vocabulary));

  int write_error = 0;
  AnswerPrinter printer(print_style(options, terminal), [&](std::string_view piece) {
    if (options.json) return true;
    const bool written = std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() &&
                         std::fflush(stdout) == 0;
    if (!written && write_error == 0) write_error = errno;
    return written;
  });
  std::optional<SoloDrafting> drafts(options.speculation.length());
  request.drafts = drafts ? &*drafts : nullptr;
  const InterruptScope interrupts(InterruptScope::Again::ends_program);
  Session session(model.engine());
  Result<RunAnswer> made = make_answer(session, model.tokenizer(), request, prompt.parse, printer);
  if (InterruptScope::interrupted() && !made.ok()) return kInterruptedStatus;
  SLIP_TRY(const RunAnswer answer, std::move(made));

  if (options.json) std::printf("%s\n", dump_json(report(answer, model, request)).c_str());
  // Without a tokenizer there is no text to show, so show the ids.
  if (!model.tokenizer() && !options.json)
    std::printf("%s\n", dump_json(json_list(answer.result.ids)).c_str());
  if (write_error != 0 && write_error != EPIPE)
    return error("standard output: ", std::generic_category().message(write_error));
  std::clearerr(stdout);  // a reader that went away has what it wanted
  const bool show_stats = options.stats || (terminal.error && !options.json);
  if (show_stats && !options.quiet) {
    const Styles styles(terminal.colors && terminal.error);
    DecodeTraffic traffic = decode_traffic(model.engine(), answer.result);
    traffic.share_of_bandwidth = traffic.bytes_per_second / glance_at_bandwidth(model.backend());
    std::string line = describe_stats(answer.result, traffic, model.load_seconds());
    if (!request.sampling.greedy()) line += cat(" · seed ", request.sampling.seed);
    std::fprintf(stderr, "%s%s%s%s\n", terminal.error && terminal.output ? "\n" : "",
                 styles.dim.data(), line.c_str(), styles.plain.data());
  }
  if (!options.quiet) print_notes(answer, model, options.speculation);
  return InterruptScope::interrupted() ? kInterruptedStatus : 0;
}

Result<int> print_plan(const RunOptions& options) {
  SLIP_TRY(TalkingModel model, TalkingModel::open(options.model));
  SLIP_TRY(const MemoryPlan plan, model.plan(options.model, options.speculation, 0));
  if (options.json) {
    const JsonObject object{{"model", model.name()},
                            {"weights", plan.weights},
                            {"activations", plan.activations},
                            {"state", plan.state},
                            {"kv", plan.kv},
                            {"kv_type", name_of(plan.cache_format.kv)},
                            {"context", plan.context},
                            {"max_context", plan.max_context},
                            {"total", plan.total()},
                            {"budget", plan.budget}};
    std::printf("%s\n", dump_json(object).c_str());
    return 0;
  }
  std::printf("%s on %s\n%s", model.name().c_str(), model.backend().description.c_str(),
              plan.describe().c_str());
  for (const std::string& note : model.source().notes()) std::printf("note: %s\n", note.c_str());
  return 0;
}

}  // namespace slip
