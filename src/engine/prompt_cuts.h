// Where the steps that compute a prompt end, and where its state is remembered.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace slip {

struct PromptCuts {
  std::vector<int64_t> ends;         // a step ends here, rising; the last is the prompt's length
  std::vector<int64_t> checkpoints;  // of those, the places that are remembered
};

// `segment`: 0 where the numbers do not depend on the cuts; steps then end at checkpoints and
// wherever else suits. Otherwise the rows of the longest step: the cuts of a beginning are then the
// same whatever follows, so that texts that begin alike are computed alike.
PromptCuts cut_prompt(int64_t length, std::span<const int64_t> message_ends, int64_t segment);

}  // namespace slip
