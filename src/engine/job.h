// One request on its way: what was asked, what has been computed, what has been told.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "cache/prefix_index.h"
#include "engine/answer.h"
#include "engine/drafted_text.h"
#include "engine/prompt_cuts.h"
#include "engine/request.h"

namespace slip {

struct Job {
  Job(Request asked, std::shared_ptr<RequestListener> hears, int64_t segment);

  RequestId id{};   // rises with arrival
  Request request;  // its prompt has moved to `tokens`
  std::shared_ptr<RequestListener> listener;
  int64_t prompt_length;
  PromptCuts cuts;
  bool cuts_matter;  // to the numbers: what is remembered of it is bound to them

  std::vector<int32_t> tokens;  // the prompt and all that was chosen since
  int64_t computed = 0;         // of them, those that the sequence holds
  int64_t scored = 0;  // rows of the prompt that need no logits any more, but for the answer
  std::optional<SequenceId> sequence;  // while it runs
  std::optional<Answer> answer;        // from its first start on, as what is drafted of it
  DraftChances chances;
  std::optional<DraftedText> drafted;
  bool cancelled = false;
  bool ended = false;  // on_finish() was called
  uint64_t turn = 0;   // of its prompt: rises with every start and every piece that is computed

  Stopwatch clock;  // since it arrived
  double started = 0, first_token = 0, last_token = 0;
  RequestSummary summary;

  // Tokens to compute before the next can be chosen.
  int64_t pending() const { return int64_t(tokens.size()) - computed; }
  bool decodes() const { return pending() == 1; }

  // Whether log probabilities of its prompt are still to be told. The last row is about the answer.
  bool scores() const { return scored < prompt_length - 1; }

  // Where the step that comes next has to end.
  int64_t next_cut() const;
  bool at_checkpoint() const;

  // What the sequence holds, or will hold, in its first `length` positions.
  PrefixIndex::Text text(int64_t length) const;
};

}  // namespace slip
