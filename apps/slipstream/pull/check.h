// Whether a model could run on this machine, as far as that is known before its weights are here.
#pragma once

#include <cstdint>
#include <string>

#include "slipstream/common/model_flags.h"

namespace slip {

// `config` is the text of its config.json, `weight_bytes` what a hub lists of its weights.
Status check_before_download(const std::string& config, uint64_t weight_bytes,
                             const ModelFlags& flags);

}  // namespace slip
