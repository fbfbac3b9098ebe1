// Fused experts, one matrix at a time. BF16 checkpoints hold the experts of a layer as two tensors,
// quantized ones hold three matrices per expert; converters speak of matrices.
//   experts.gate_up_proj [experts, 2 * width, hidden]  ->  experts.N.gate_proj.weight (rows first),
//                                                          experts.N.up_proj.weight
//   experts.down_proj    [experts, hidden, width]      ->  experts.N.down_proj.weight
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace slip {

// A tensor of a file, or one expert's rows of a fused one.
struct SplitTensor {
  std::string name;
  std::vector<int64_t> shape;
  const StoredTensor* stored = nullptr;
  int64_t first_row = 0;  // counted over all experts

  std::span<const std::byte> bytes() const;
};

// In the order given; the experts of a fused tensor one after the other.
std::vector<SplitTensor> split_fused_experts(const std::vector<const StoredTensor*>& tensors);

}  // namespace slip
