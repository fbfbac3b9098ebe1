// One request from prompt ids to text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/answer.h"
#include "engine/decoder.h"
#include "text/tokenizer.h"

namespace slip {

struct GenerateRequest {
  std::vector<int32_t> prompt;
  int64_t remember = 0;  // of its tokens: a later prompt may begin with them
  SamplingOptions sampling;
  SoloDrafting* drafts = nullptr;  // changes the speed, never the text; learns from each request
  int64_t max_tokens = -1;         // -1: until the context is full
  std::vector<int32_t> stop_ids;   // end the answer and are not part of it
  std::vector<std::string> stop_strings;
};

struct GenerateResult {
  std::vector<int32_t> ids;
  std::string text;  // empty without a tokenizer
  FinishReason finish = FinishReason::cancelled;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;  // of the prompt, already in the session
  double prompt_seconds = 0;
  double decode_seconds = 0;
  DraftCounts drafts;

  double decode_rate() const {
    return decode_seconds > 0 ? double(ids.size()) / decode_seconds : 0;
  }
  double prompt_rate() const {
    return prompt_seconds > 0 ? double(prompt_tokens - reused_tokens) / prompt_seconds : 0;
  }
};

struct GenerateEvents {
  // New text, always whole characters. False stops the answer.
  std::function<bool(std::string_view text)> on_text;
  // While the prompt is computed. False stops.
  Session::Progress on_prompt;
};

// `tokenizer` may be null: then there is no text and stop strings are refused.
Result<GenerateResult> generate(Session& session, const Tokenizer* tokenizer,
                                const GenerateRequest& request, const GenerateEvents& events);

}  // namespace slip
