// How tokens are chosen and when an answer ends, as flags of `run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/generate.h"
#include "engine/generation_config.h"
#include "slipstream/common/flags.h"

namespace slip {

struct SamplingFlags {
  bool greedy = false;
  bool ignore_eos = false;
  std::optional<double> temperature, top_p, min_p;
  std::optional<double> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int64_t> top_k, seed, max_tokens;
  std::vector<std::string> logit_bias;  // "ID=BIAS"
  std::vector<std::string> stop;

  void add_to(Flags& flags);

  // Which flag is out of its range, if one is.
  Status check() const;
  // Which token does not exist, if one does not.
  Status check_ids(int64_t vocabulary) const;

  // A request without its prompt: what the makers of the model want, changed by the flags. Without
  // --seed every call takes another one.
  GenerateRequest request(const GenerationDefaults& defaults) const;
};

}  // namespace slip
