// What one answer is asked for, and what is told about it while it is made.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer.h"
#include "engine/draft_counts.h"
#include "engine/logprobs.h"
#include "grammar/constraint.h"

namespace slip {

enum class RequestId : uint64_t {};

struct Request {
  std::vector<int32_t> prompt;
  // Places in the prompt after which another prompt may go on differently: ends of messages. What
  // was computed up to there is kept if memory allows.
  std::vector<int64_t> message_ends;
  SamplingOptions sampling;
  int64_t max_tokens = -1;        // -1: until the context is full
  int64_t min_tokens = 0;         // no stop token before
  std::vector<int32_t> stop_ids;  // end the answer and are not part of it
  std::vector<std::string> stop_strings;
  int top_logprobs = -1;  // -1: no log probabilities; 0: of the chosen token; n: of n others too
  bool score_prompt = false;  // the same of the prompt's tokens: nothing remembered is used then
  std::unique_ptr<Constraint> constraint;  // null: free text
  std::string salt;  // what is remembered of a prompt is shared among requests of one salt
  bool reuse_prefix = true;
  bool draft = true;  // changes the speed, never the answer
};

// One token of the answer. `text` is what became certain with it: maybe nothing yet, always whole
// characters, never a part of a stop string. Tokens of the prompt have none.
struct TokenEvent {
  int32_t id = -1;
  std::string text;
  float logprob = 0;              // of the model's distribution, before sampling options
  std::vector<TokenLogprob> top;  // the most likely ones first
};

// How it ended.
struct RequestSummary {
  FinishReason finish = FinishReason::cancelled;
  std::optional<Error> failure;          // finish is then `cancelled`
  std::string text;                      // the rest of the text, held back until the end
  std::string stop_string;               // the one that was found
  std::optional<TokenEvent> stop_token;  // the one that was chosen; no part of the answer
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, not computed again
  int64_t tokens = 0;         // of the answer, the stop token not counted
  double queue_seconds = 0;   // until its prompt was begun
  double prompt_seconds = 0;  // from there to its first token
  double decode_seconds = 0;  // from there to its last
  DraftCounts drafts;
};

// Called on the service's thread, which computes nothing meanwhile: be quick, and do not call the
// service from here except submit() and cancel().
class RequestListener {
 public:
  virtual ~RequestListener() = default;
  virtual void on_prompt(int64_t /*done*/, int64_t /*total*/) {}
  // With score_prompt: every token of the prompt but the first, which follows nothing; before all
  // of the answer.
  virtual void on_prompt_token(const TokenEvent& /*event*/) {}
  virtual void on_token(const TokenEvent& event) = 0;
  // The last call.
  virtual void on_finish(const RequestSummary& summary) = 0;
};

}  // namespace slip
