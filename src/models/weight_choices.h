// Formats to make at load, where the files hold 16 or 32 bits. What is already quantized stays as
// it is.
#pragma once

#include <cstdint>

namespace slip {

struct WeightChoices {
  bool int8_head = false;
  bool fp8_shared_experts = false;  // of the main layers
  bool int8_drafter = false;        // drafts decide nothing, so their weights may be coarse
  int64_t draft_shortlist = 0;      // rows of the head that drafting scores; 0: all
};

}  // namespace slip
