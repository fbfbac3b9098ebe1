#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_ops_impl.h"
#include "kernels/cpu/kv_codes.h"
#include "kernels/kv_index.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

constexpr int64_t kMaxHeadDim = 1024;

void store_plain(const float* from, int64_t count, const View& to, int64_t index) {
  switch (to.dtype) {
    case DType::f32: std::memcpy(to.f32() + index, from, size_t(count) * sizeof(float)); return;
    case DType::bf16: {
      auto* out = to.as<uint16_t>(DType::bf16) + index;
      for (int64_t i = 0; i < count; ++i) out[i] = float_to_bf16(from[i]);
      return;
    }
    case DType::fp8_e4m3: {
      auto* out = to.as<uint8_t>(DType::fp8_e4m3) + index;
      for (int64_t i = 0; i < count; ++i) out[i] = float_to_fp8(from[i]);
      return;
    }
    default: unreachable("type of keys and values");
  }
}

// Pairs dimension j with j + pairs.
void rotate(float* head, const float* cos, const float* sin, int64_t pairs) {
  for (int64_t j = 0; j < pairs; ++j) {
    const float a = head[j], b = head[j + pairs];
    head[j] = a * cos[j] - b * sin[j];
    head[j + pairs] = b * cos[j] + a * sin[j];
  }
}

}  // namespace

void CpuOps::rope_table(const RopeTableArgs& args) {
  check_shapes(args);
  const int64_t pairs = args.frequencies.shape[0];
  for_span_rows(args.spans, pairs * 16, [&](const Span& span, int64_t row) {
    for (int64_t j = 0; j < pairs; ++j) {
      // In double: a float angle at position 262143 is off by up to 0.016.
      const double angle = double(span.start + row) * double(args.frequencies.f32()[j]);
      const int64_t index = (span.first_row + row) * pairs + j;
      args.cos.f32()[index] = float(std::cos(angle)) * args.scale;
      args.sin.f32()[index] = float(std::sin(angle)) * args.scale;
    }
  });
}

void CpuOps::rotate_and_store(const RotateAndStoreArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t q_heads = dims["q_heads"], q_stride = dims["q_stride"];
  const int64_t head_dim = dims["head_dim"], pairs = dims["pairs"];
  const bool stores = !args.k.empty();
  const int64_t kv_heads = stores ? dims["kv_heads"] : 0;
  check(head_dim <= kMaxHeadDim, "rotate_and_store: head_dim ", head_dim);
  const bool coded = stores && args.kv.recipe.coded();
  const CodedSide sides[2] = {coded_key_side(args), coded_value_side(args)};
  if (coded) check_codable(sides[0]);
  if (coded)
    for (const Span& span : args.spans)
      for (const CodedSide& side : sides) move_beginning(side, span);
  const int64_t values_per_row = (q_heads + 2 * kv_heads) * head_dim;
  for_span_rows(args.spans, values_per_row, [&](const Span& span, int64_t span_row) {
    const int64_t row = span.first_row + span_row;
    const float* cos = args.cos.f32() + row * pairs;
    const float* sin = args.sin.f32() + row * pairs;
    for (int64_t head = 0; head < q_heads; ++head) {
      float* out = args.out_q.f32() + (row * q_heads + head) * head_dim;
      loops_.rms_norm({.x = args.q.f32() + (row * q_heads + head) * q_stride,
                       .scale = args.q_scale.f32(),
                       .count = head_dim,
                       .eps = args.eps,
                       .out = out});
      rotate(out, cos, sin, pairs);
    }
    if (!stores) return;
    const int64_t position = span.start + span_row;
    for (int64_t head = 0; head < kv_heads; ++head) {
      alignas(64) float key[kMaxHeadDim], normed[kMaxHeadDim];
      const float* value = args.v.f32() + (row * kv_heads + head) * head_dim;
      if (args.norm_v) {
        loops_.rms_norm(
            {.x = value, .scale = nullptr, .count = head_dim, .eps = args.eps, .out = normed});
        value = normed;
      }
      loops_.rms_norm({.x = args.k.f32() + (row * kv_heads + head) * head_dim,
                       .scale = args.k_scale.f32(),
                       .count = head_dim,
                       .eps = args.eps,
                       .out = key});
      rotate(key, cos, sin, pairs);
      if (coded) {
        store_uncoded(sides[0], span, position, head, loops_, key);
        store_uncoded(sides[1], span, position, head, loops_, value);
      } else {
        const int64_t slot = plain_vector(args.kv, span, position, head) * head_dim;
        store_plain(key, head_dim, args.kv.keys, slot);
        store_plain(value, head_dim, args.kv.values, slot);
      }
    }
  });
  if (coded)
    for (const Span& span : args.spans) encode_pages(sides, span);
}

void CpuOps::encode_pages(std::span<const CodedSide, 2> sides, const Span& span) {
  const int64_t kv_heads = sides[0].kv_heads(), page_len = sides[0].page_len();
  const int64_t first_page = span.start - span.start % page_len;
  pool_.run(2 * kv_heads * completed_pages(sides[0], span), [&](int64_t item, int thread) {
    const int64_t page = item / (2 * kv_heads), head = item / 2 % kv_heads;
    encode_page(sides[item % 2], span, first_page + page * page_len, head, loops_,
                thread_scratch(thread));
  });
}

}  // namespace slip
