#include "engine/generate.h"

#include <algorithm>

#include "base/clock.h"

namespace slip {

Result<GenerateResult> generate(Session& session, const Tokenizer* tokenizer,
                                const GenerateRequest& request, const GenerateEvents& events) {
  if (request.prompt.empty()) return error("the prompt is empty");
  if (!tokenizer && !request.stop_strings.empty())
    return error("stop strings need a tokenizer, and the model has none");
  GenerateResult result;
  result.prompt_tokens = int64_t(request.prompt.size());

  const Stopwatch prompt_clock;
  SLIP_TRY(result.reused_tokens, session.sync(request.prompt, events.on_prompt, request.remember));
  result.prompt_seconds = prompt_clock.seconds();

  const int64_t vocabulary = session.engine().model().info().vocabulary;
  Sampler sampler(request.sampling, vocabulary,
                  tokenizer ? std::min<int64_t>(tokenizer->vocab_size(), vocabulary) : vocabulary);
  sampler.see_prompt(request.prompt);
  Answer answer({.room = session.room() + 1,
                 .max_tokens = request.max_tokens,
                 .stop_ids = request.stop_ids,
                 .stop_strings = request.stop_strings},
                std::move(sampler), tokenizer);
  const auto emit = [&](const std::string& text) {
    result.text += text;
    return text.empty() || !events.on_text || events.on_text(text);
  };

  const Stopwatch decode_clock;
  Decoder decoder(session, answer.sampler(), request.drafts, request.stop_ids);
  bool cancelled = false;
  while (!answer.finish()) {
    const Answer::Token token = answer.next(decoder.logits());
    if (token.is_part) result.ids.push_back(token.id);
    if (cancelled = !emit(token.text); cancelled) break;
    if (!answer.finish()) SLIP_TRY_STATUS(decoder.advance(token.id, answer.wanted()));
  }
  decoder.finish();
  if (!cancelled) {
    emit(answer.rest());
    result.finish = *answer.finish();
  }
  result.decode_seconds = decode_clock.seconds();
  result.drafts = decoder.counts();
  return result;
}

}  // namespace slip
