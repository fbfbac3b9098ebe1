#include "server/openai_shapes.h"

#include <cmath>
#include <ctime>
#include <random>
#include <utility>

#include "base/json_dump.h"

namespace slip {
namespace {

void append_token_member(std::string& out, const Tokenizer& tokenizer, int32_t id, float logprob) {
  const int32_t ids[] = {id};
  out += R"({"token":)";
  append_json_quoted(out, tokenizer.decode(ids));
  out += R"(,"logprob":)" + format_double(finite_logprob(logprob)) + R"(,"bytes":[)";
  bool first = true;
  for (const char byte : tokenizer.token_bytes(id)) {
    if (!std::exchange(first, false)) out += ',';
    out += std::to_string(static_cast<unsigned char>(byte));
  }
  out += ']';
}

double rate(int64_t count, double seconds) { return seconds > 0 ? double(count) / seconds : 0; }
double per_item_ms(int64_t count, double seconds) {
  return count > 0 ? seconds * 1e3 / double(count) : 0;
}

}  // namespace

std::string random_id(std::string_view prefix) {
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random(std::random_device{}());
  std::string id(prefix);
  for (int i = 0; i < 24; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

ReplyIdentity new_identity(std::string_view prefix, std::string model) {
  return {random_id(prefix), int64_t(std::time(nullptr)), std::move(model)};
}

std::string_view openai_finish_reason(const RequestSummary& summary, bool called_tools) {
  const bool cut_short =
      summary.finish == FinishReason::max_tokens || summary.finish == FinishReason::context_full;
  if (cut_short) return "length";
  return called_tools ? "tool_calls" : "stop";
}

double finite_logprob(float logprob) { return std::isfinite(logprob) ? double(logprob) : -9999.0; }

JsonObject openai_usage(const AnswerUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", JsonObject{{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", JsonObject{{"reasoning_tokens", usage.reasoning_tokens}}}};
}

JsonObject llama_timings(const RequestSummary& summary) {
  const int64_t prompt = summary.prompt_tokens - summary.cached_tokens;
  JsonObject timings = {
      {"cache_n", summary.cached_tokens},
      {"prompt_n", prompt},
      {"prompt_ms", summary.prompt_seconds * 1e3},
      {"prompt_per_token_ms", per_item_ms(prompt, summary.prompt_seconds)},
      {"prompt_per_second", rate(prompt, summary.prompt_seconds)},
      {"predicted_n", summary.tokens},
      {"predicted_ms", summary.decode_seconds * 1e3},
      {"predicted_per_token_ms", per_item_ms(summary.tokens, summary.decode_seconds)},
      {"predicted_per_second", rate(summary.tokens, summary.decode_seconds)}};
  if (summary.drafts.drafted > 0) {
    timings["draft_n"] = summary.drafts.drafted;
    timings["draft_n_accepted"] = summary.drafts.accepted;
  }
  return timings;
}

void append_logprob(std::string& out, const Tokenizer& tokenizer, const TokenEvent& event) {
  append_token_member(out, tokenizer, event.id, event.logprob);
  out += R"(,"top_logprobs":[)";
  bool first = true;
  for (const TokenLogprob& other : event.top) {
    if (!std::exchange(first, false)) out += ',';
    append_token_member(out, tokenizer, other.id, other.logprob);
    out += '}';
  }
  out += "]}";
}

void ReasoningText::append(std::string& out, std::string reasoning, std::string content) {
  if (field_ == ReasoningField::none) {
    if (!reasoning.empty() && !std::exchange(open_, true)) reasoning.insert(0, "<think>\n");
    if (!content.empty() && std::exchange(open_, false)) content.insert(0, "</think>\n\n");
    content.insert(0, reasoning);
    reasoning.clear();
  }
  const auto add = [&](std::string_view name, const std::string& text) {
    if (!out.empty() && out.back() != '{') out += ',';
    append_json_quoted(out, name);
    out += ':';
    append_json_quoted(out, text);
  };
  const bool both = field_ == ReasoningField::both;
  if (!reasoning.empty() && field_ != ReasoningField::reasoning)
    add("reasoning_content", reasoning);
  if (!reasoning.empty() && (both || field_ == ReasoningField::reasoning))
    add("reasoning", reasoning);
  if (!content.empty()) add("content", content);
}

}  // namespace slip
