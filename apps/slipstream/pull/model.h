// A model that somebody wants to use and that is not there yet.
#pragma once

#include "slipstream/common/model_flags.h"

namespace slip {

// For verbs that run a model. Settles --from-huggingface-repo into flags.model; then, if that is
// org/name and not in the cache, downloads it. A person who only typed a name is asked first.
Status fetch_model(ModelFlags& flags);

}  // namespace slip
