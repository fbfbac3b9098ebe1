// Formats to make at load, where the files hold 16 or 32 bits. What is already quantized stays as
// it is.
#pragma once

#include <cstdint>
#include <optional>

#include "quant/weight.h"

namespace slip {

struct WeightChoices {
  bool int8_head = false;
  std::optional<WeightFormat> shared_experts{};  // fp8_block or int8_row; of the main layers
  // int8_row or int4_group, for the drafting layer and a copy of the head of its own: drafts decide
  // nothing, so their weights may be coarse.
  std::optional<WeightFormat> drafter{};
  int64_t draft_shortlist = 0;  // rows of the head that drafting scores; 0: all
};

}  // namespace slip
