#include "engine/answer.h"

#include <algorithm>
#include <limits>

namespace slip {

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop_token: return "stop_token";
    case FinishReason::stop_string: return "stop_string";
    case FinishReason::max_tokens: return "max_tokens";
    case FinishReason::context_full: return "context_full";
    case FinishReason::cancelled: return "cancelled";
  }
  unreachable("FinishReason");
}

Answer::Answer(const AnswerLimits& limits, Sampler sampler, const Tokenizer* tokenizer,
               Constraint* constraint)
    : limits_(limits),
      sampler_(std::move(sampler)),
      constraint_(constraint),
      stops_(limits.stop_strings) {
  if (tokenizer) detokenizer_.emplace(*tokenizer);
  if (limits_.max_tokens == 0) finish_ = FinishReason::max_tokens;
}

int64_t Answer::wanted() const {
  const int64_t most =
      limits_.max_tokens < 0 ? std::numeric_limits<int64_t>::max() : limits_.max_tokens;
  return std::min(most, limits_.room) - tokens_;
}

bool Answer::is_stop(int32_t id) const {
  return std::ranges::find(limits_.stop_ids, id) != limits_.stop_ids.end();
}

Answer::Token Answer::next(const LogitRow& logits) {
  check(!finish_, "a token after the end of an answer");
  const bool may_stop = tokens_ >= limits_.min_tokens;
  const TokenFilter filter{
      .constraint = constraint_ && !constraint_->free() ? constraint_ : nullptr,
      .banned = may_stop ? std::span<const int32_t>() : limits_.stop_ids};
  const int32_t id = sampler_.next(logits, filter);
  if (is_stop(id)) {
    finish_ = FinishReason::stop_token;
    return {id, false, {}};
  }
  if (constraint_) constraint_->advance(id);
  ++tokens_;
  Token token{id, true, to_text(id)};
  if (stops_.matched()) {
    finish_ = FinishReason::stop_string;
  } else if (tokens_ == limits_.max_tokens) {
    finish_ = FinishReason::max_tokens;
  } else if (wanted() <= 0) {
    finish_ = FinishReason::context_full;
  }
  return token;
}

std::string Answer::to_text(int32_t id) {
  return detokenizer_ ? stops_.push(detokenizer_->push(id)) : std::string();
}

std::string Answer::rest() {
  if (!detokenizer_ || stops_.matched()) return {};
  std::string rest = stops_.push(detokenizer_->finish());
  return rest + stops_.finish();
}

}  // namespace slip
