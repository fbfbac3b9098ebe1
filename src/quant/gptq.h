// INT4 weights as GPTQ, AutoRound and GPTQModel write them, into the plain int4_group layout.
//   qweight  i32 [in / 8, out]        nibble j of word [i, o] is the code of input 8 i + j
//   scales   f16 [in / group, out]    may be negative or subnormal
//   qzeros   i32 [in / group, out / 8]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "quant/weight.h"

namespace slip {

// Bytes as they lie in the file; no alignment needed.
struct GptqTensors {
  std::span<const std::byte> qweight;
  std::span<const std::byte> scales;
  std::span<const std::byte> qzeros;
};

// Refuses all but symmetric weights, whose codes are the same whether a file stores the zero point
// minus one (v1: 7) or as it is (v2: 8). Asymmetric ones are ambiguous in v1: a stored -1 borrows
// from its neighbour.
Status check_symmetric_zeros(std::span<const std::byte> qzeros);

// g_idx i32 [in] names the group of each input; only the trivial i / group is supported, because
// any other order ("act order", desc_act) would have to permute the activations.
Status check_trivial_g_idx(std::span<const std::byte> g_idx, int group);

// Checks sizes, zero points and scales, and fills values and scales of `into`, which is plain.
// Memory-bound: it runs over every expert of a model at load.
Status unpack_gptq(const GptqTensors& tensors, const Weight& into);

// The other way: a plain weight into tensors as AutoRound writes them (zeros v1). The outputs are a
// multiple of eight.
struct PackedGptq {
  std::vector<std::byte> qweight, scales, qzeros;
};
PackedGptq pack_gptq(const Weight& plain);

}  // namespace slip
