// What the eval verbs share.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "backend.h"
#include "model_flags.h"
#include "speculate_flags.h"
#include "verb.h"

namespace slip {

// A JSON list of token ids, or a list of such lists, or what `eval tokenize` prints.
Result<std::vector<std::vector<int32_t>>> read_id_lists(const std::string& path);
// Exactly one list.
Result<std::vector<int32_t>> read_ids(const std::string& path);

// All of standard input.
std::string read_stdin();

struct EvaluationNeeds {
  int64_t context = 0;                      // positions, unless the flags name them
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

// Draws "what 3 of 20" on stderr when that is a terminal.
std::function<void(int64_t done, int64_t total)> progress_line(const std::string& what);

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
