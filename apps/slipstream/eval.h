// What the eval verbs share.
#pragma once

#include <filesystem>
#include <vector>

#include "environment.h"
#include "verb.h"

namespace slip {

// A JSON list of token ids, or a list of such lists.
Result<std::vector<std::vector<int32_t>>> read_id_lists(const std::string& path);
// Exactly one list.
Result<std::vector<int32_t>> read_ids(const std::string& path);

// All of standard input.
std::string read_stdin();

// A loaded model with one session, as far as evaluation needs it.
struct Evaluation {
  Backend backend;
  std::unique_ptr<Engine> engine;
};
Result<Evaluation> load_for_evaluation(const ModelFlags& flags, bool with_mtp, int64_t context);

std::unique_ptr<Verb> make_eval_logits_verb();
std::unique_ptr<Verb> make_eval_mtp_verb();
std::unique_ptr<Verb> make_eval_ppl_verb();
std::unique_ptr<Verb> make_eval_tokenize_verb();
std::unique_ptr<Verb> make_eval_detokenize_verb();
std::unique_ptr<Verb> make_eval_render_verb();

}  // namespace slip
