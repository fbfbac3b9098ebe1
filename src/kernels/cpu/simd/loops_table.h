// The table of this instruction set. Last include of loops_<isa>.cc.
#pragma once

#include "kernels/cpu/simd/loops.h"

namespace slip {
namespace {

// A sum that needs every byte, in several chains: as fast as memory allows.
uint64_t read_bytes(const std::byte* data, size_t bytes) {
  F32x16 total[4] = {zero(), zero(), zero(), zero()};
  const auto* values = reinterpret_cast<const float*>(data);
  const size_t count = bytes / sizeof(float) / (4 * kLanes) * (4 * kLanes);
  for (size_t i = 0; i < count; i += 4 * kLanes)
    for (int j = 0; j < 4; ++j) total[j] = max(total[j], load(values + i + size_t(j) * kLanes));
  return uint64_t(largest(max(max(total[0], total[1]), max(total[2], total[3]))) != 0);
}

// The int4 kernel itself on data that stays in the first-level cache.
int64_t int8_products(int64_t rounds) {
  alignas(64) static uint8_t codes[16 * 64];
  alignas(64) static int8_t x[4][2 * 128];
  const int8_t* rows[4] = {x[0], x[1], x[2], x[3]};
  const int32_t offsets[4] = {};
  F32x16 dots[4], total = zero();
  for (int64_t i = 0; i < rounds; ++i) {
    int4_dot<2, 4>(codes, 16, rows, offsets, dots);
    total = add(total, add(add(dots[0], dots[1]), add(dots[2], dots[3])));
  }
  volatile float sink = sum(total);
  (void)sink;
  return rounds * 4 * 128 * kLanes * 2;  // two bytes per activation
}

template <int kBytes>
constexpr Loops make_loops(Isa isa) {
  return {.isa = isa,
          .activation_bytes = kBytes,
          .quantize_row = quantize_row<kBytes>,
          .linear_f32 = linear_float<StoredF32>,
          .linear_bf16 = linear_float<StoredBf16>,
          .linear_f16 = linear_float<StoredF16>,
          .linear_fp8 = linear_float<StoredFp8>,
          .linear_int8 = linear_int8<kBytes>,
          .linear_int4 = linear_int4<kBytes>,
          .rms_norm = rms_norm,
          .gated_rms_norm = gated_rms_norm,
          .silu_mul = silu_mul,
          .gelu_mul = gelu_mul,
          .soft_cap = soft_cap,
          .scale = scale,
          .sigmoid_mul = sigmoid_mul,
          .peak = peak,
          .conv_silu = conv_silu,
          .inner_product = inner_product,
          .l2_normalize = l2_normalize,
          .scaled_add = scaled_add,
          .delta_columns = delta_columns,
          .attention_page = attention_page,
          .turbo_rotate = turbo_rotate,
          .turbo_unrotate = turbo_unrotate,
          .turbo_encode = turbo_encode,
          .turbo_encode_int8 = turbo_encode_int8,
          .round_query = round_query,
          .attention_codes = attention_codes,
          .read_bytes = read_bytes,
          .int8_products = int8_products};
}

}  // namespace
}  // namespace slip
