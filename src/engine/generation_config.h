// generation_config.json: how the makers of a model want it sampled, and where it stops.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/sampling.h"

namespace slip {

struct GenerationDefaults {
  SamplingOptions sampling;  // suppress_tokens as a bias of minus infinity
  std::vector<int32_t> stop_ids;

  void add_stop(int32_t id);  // if it is not there yet

  // Places in a prompt behind which a message has ended: the tokens that end the model's own turns
  // end all turns in its template.
  std::vector<int64_t> message_ends(std::span<const int32_t> ids) const;
};

// An absent file gives greedy decoding and the stop ids of config.json.
Result<GenerationDefaults> read_generation_defaults(const std::filesystem::path& model_folder);

}  // namespace slip
