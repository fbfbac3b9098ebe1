// What the eval verbs share.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/json.h"
#include "engine/session.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/speculate_flags.h"
#include "slipstream/verb.h"

namespace slip {

// A JSON list of token ids, or a list of such lists, or what `eval tokenize` prints.
Result<std::vector<std::vector<int32_t>>> read_id_lists(const std::string& path);
// Exactly one list.
Result<std::vector<int32_t>> read_ids(const std::string& path);
// What a JSON list of them says; `source` begins a refusal.
Result<std::vector<int32_t>> token_ids(const JsonArray& list, const std::string& source);

// All of standard input.
std::string read_stdin();

struct EvaluationNeeds {
  int64_t context = 0;                      // positions, unless the flags name them
  const char* advice = nullptr;             // what to change if those are too many
  bool with_drafter = false;                // load the drafter, if there is one
  const SpeculateFlags* drafter = nullptr;  // how to hold it; null: as in the files
};

// A model that gives the logits of every row of a step.
Result<std::unique_ptr<Engine>> load_engine(const Backend& backend, const ModelFlags& flags,
                                            const EvaluationNeeds& needs);

// The same with a backend of its own.
struct Evaluation {
  Backend backend;
  std::unique_ptr<Engine> engine;
};
Result<Evaluation> load_for_evaluation(const ModelFlags& flags, const EvaluationNeeds& needs);

// Feeds `ids` and hands out the logits (and, with MTP, the hidden state) of each, until one of them
// is not a number: then nothing that a model says means anything.
using EachRow = FunctionRef<void(int64_t position, std::span<const float> logits,
                                 std::span<const float> hidden)>;
Status feed_rows(Session& session, std::span<const int32_t> ids, EachRow each);

std::unique_ptr<Verb> make_eval_logits_verb();
std::unique_ptr<Verb> make_eval_mtp_verb();
std::unique_ptr<Verb> make_eval_ppl_verb();
std::unique_ptr<Verb> make_eval_accept_verb();
std::unique_ptr<Verb> make_eval_kl_verb();
std::unique_ptr<Verb> make_eval_needle_verb();
std::unique_ptr<Verb> make_eval_tokenize_verb();
std::unique_ptr<Verb> make_eval_detokenize_verb();
std::unique_ptr<Verb> make_eval_render_verb();

}  // namespace slip
