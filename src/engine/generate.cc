#include "engine/generate.h"

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "engine/stop_strings.h"
#include "text/detokenizer.h"

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

namespace {

// Ids to text, held back where a stop string or half a character may be pending.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const GenerateRequest& request)
      : stops_(request.stop_strings) {
    if (tokenizer) detokenizer_.emplace(*tokenizer);
  }

  std::string push(int32_t id) { return detokenizer_ ? stops_.push(detokenizer_->push(id)) : ""; }
  std::string finish() {
    if (!detokenizer_ || stops_.matched()) return "";
    std::string rest = stops_.push(detokenizer_->finish());
    return rest + stops_.finish();
  }
  bool stopped() const { return stops_.matched(); }

 private:
  std::optional<Detokenizer> detokenizer_;
  StopStrings stops_;
};

}  // namespace

Result<GenerateResult> generate(Session& session, const Tokenizer* tokenizer,
                                const GenerateRequest& request, const GenerateEvents& events) {
  if (request.prompt.empty()) return error("the prompt is empty");
  if (!tokenizer && !request.stop_strings.empty())
    return error("stop strings need a tokenizer, and the model has none");
  GenerateResult result;
  result.prompt_tokens = int64_t(request.prompt.size());
  const std::vector<int32_t>& stop_ids = request.stop_ids;

  const Stopwatch prompt_clock;
  SLIP_TRY(result.reused_tokens, session.sync(request.prompt, events.on_prompt));
  result.prompt_seconds = prompt_clock.seconds();
  const int64_t room = session.room() + 1;  // the last token needs no place

  const auto vocabulary = int64_t(session.logits().size());
  Sampler sampler(request.sampling, vocabulary,
                  tokenizer ? std::min<int64_t>(tokenizer->vocab_size(), vocabulary) : vocabulary);
  sampler.see_prompt(request.prompt);
  TextStream stream(tokenizer, request);
  const auto emit = [&](const std::string& text) {
    result.text += text;
    return text.empty() || !events.on_text || events.on_text(text);
  };

  const Stopwatch decode_clock;
  Decoder decoder(session, sampler, request.drafts);
  // How many tokens may still be chosen, by the request and by the room behind the prompt.
  const auto wanted = [&] {
    const auto made = int64_t(result.ids.size());
    const int64_t fitting = room - made;
    return request.max_tokens < 0 ? fitting : std::min(request.max_tokens - made, fitting);
  };
  const auto enough = [&] {
    return request.max_tokens >= 0 && int64_t(result.ids.size()) >= request.max_tokens;
  };
  if (enough()) result.finish = FinishReason::max_tokens;
  while (!enough()) {
    const int32_t id = sampler.next(decoder.logits());
    if (std::find(stop_ids.begin(), stop_ids.end(), id) != stop_ids.end()) {
      result.finish = FinishReason::stop_token;
      break;
    }
    result.ids.push_back(id);
    if (!emit(stream.push(id))) {
      result.finish = FinishReason::cancelled;
      break;
    }
    if (stream.stopped()) {
      result.finish = FinishReason::stop_string;
      break;
    }
    if (enough()) {
      result.finish = FinishReason::max_tokens;
      break;
    }
    if (wanted() <= 0) {
      result.finish = FinishReason::context_full;
      break;
    }
    SLIP_TRY_STATUS(decoder.advance(id, wanted()));
  }
  decoder.finish();
  if (result.finish != FinishReason::cancelled) emit(stream.finish());
  result.decode_seconds = decode_clock.seconds();
  result.drafts = decoder.counts();
  return result;
}

}  // namespace slip
