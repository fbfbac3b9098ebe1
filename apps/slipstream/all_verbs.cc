#include <utility>

#include "slipstream/verb.h"

namespace slip {

std::vector<std::unique_ptr<Verb>> make_all_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  verbs.push_back(make_run_verb());
  verbs.push_back(make_serve_verb());
  verbs.push_back(make_pull_verb());
  for (auto& verb : make_convert_verbs()) verbs.push_back(std::move(verb));
  verbs.push_back(make_inspect_verb());
  verbs.push_back(make_bench_verb());
  verbs.push_back(make_bench_ladder_verb());
  verbs.push_back(make_bench_context_verb());
  verbs.push_back(make_bench_ops_verb());
  verbs.push_back(make_bench_serve_verb());
  verbs.push_back(make_doctor_verb());
  for (auto& verb : make_eval_verbs()) verbs.push_back(std::move(verb));
  verbs.push_back(make_completions_verb());
  return verbs;
}

}  // namespace slip
