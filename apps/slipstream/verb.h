// The verbs of the program. Each file defines one and lists its flags; main.cc has the table.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "slipstream/common/flags.h"

namespace slip {

class Verb {
 public:
  virtual ~Verb() = default;
  virtual Flags& flags() = 0;
  // Refuses a command line that makes no sense, before anything is done.
  virtual Status settle() { return {}; }
  // The exit status, or why it failed.
  virtual Result<int> run() = 0;
};

std::unique_ptr<Verb> make_run_verb();
std::unique_ptr<Verb> make_serve_verb();
std::unique_ptr<Verb> make_pull_verb();
std::unique_ptr<Verb> make_inspect_verb();
std::unique_ptr<Verb> make_bench_verb();
std::unique_ptr<Verb> make_bench_ladder_verb();
std::unique_ptr<Verb> make_bench_context_verb();
std::unique_ptr<Verb> make_bench_ops_verb();
std::unique_ptr<Verb> make_bench_serve_verb();
std::unique_ptr<Verb> make_doctor_verb();
std::unique_ptr<Verb> make_completions_verb();

// `slipstream convert WHAT ...`: checkpoints made from checkpoints.
std::vector<std::unique_ptr<Verb>> make_convert_verbs();

// `slipstream eval WHAT ...`: the contract for outside checks.
std::vector<std::unique_ptr<Verb>> make_eval_verbs();

// All of them, as "run", "eval logits", ... in the order of the help.
std::vector<std::unique_ptr<Verb>> make_all_verbs();

}  // namespace slip
