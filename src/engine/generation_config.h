// generation_config.json: how the makers of a model want it sampled, and where it stops.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "engine/sampling.h"

namespace slip {

struct GenerationDefaults {
  SamplingOptions sampling;  // suppress_tokens as a bias of minus infinity
  std::vector<int32_t> stop_ids;

  void add_stop(int32_t id);  // if it is not there yet
};

// An absent file gives greedy decoding and the stop ids of config.json.
Result<GenerationDefaults> read_generation_defaults(const std::filesystem::path& model_folder);

}  // namespace slip
