#include "slipstream/bench/ladder_decode.h"

#include <algorithm>

#include "base/clock.h"

namespace slip {

int32_t SimulatedAcceptance::choose(int32_t own, std::optional<int32_t> draft, int64_t vocabulary) {
  if (!draft) return own;
  return accepts_(random_) ? *draft : int32_t((*draft + 1) % vocabulary);
}

Result<GenerateResult> decode_greedily(Session& session, const DecodeRequest& request) {
  GenerateResult result;
  result.prompt_tokens = int64_t(request.prompt.size());
  const Stopwatch prompt_clock;
  SLIP_TRY(result.reused_tokens, session.sync(request.prompt));
  result.prompt_seconds = prompt_clock.seconds();

  Sampler sampler({.temperature = 0}, int64_t(session.logits().size()), request.usable_tokens);
  Decoder decoder(session, sampler, request.drafts);
  const auto choose = [&] {
    const std::optional<int32_t> draft = decoder.draft();
    int32_t id = sampler.next(decoder.logits());
    if (request.simulated) id = request.simulated->choose(id, draft, request.usable_tokens);
    result.ids.push_back(id);
    const bool stops =
        std::find(request.stop_ids.begin(), request.stop_ids.end(), id) != request.stop_ids.end();
    if (stops) result.finish = FinishReason::stop_token;
    return stops;
  };
  const auto wanted = [&] { return request.max_tokens - int64_t(result.ids.size()); };

  result.finish = FinishReason::max_tokens;
  result.ids.reserve(size_t(request.max_tokens));
  bool stopped = choose();
  const Stopwatch clock;
  while (!stopped && wanted() > 0) {
    SLIP_TRY_STATUS(decoder.advance(result.ids.back(), wanted()));
    stopped = choose();
  }
  decoder.finish();
  result.decode_seconds = clock.seconds();
  result.drafts = decoder.counts();
  return result;
}

}  // namespace slip
