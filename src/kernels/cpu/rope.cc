#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_ops_impl.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

constexpr int64_t kMaxHeadDim = 1024;

void store_values(const float* from, int64_t count, DType dtype, std::byte* to, int64_t index) {
  if (dtype == DType::f32) {
    std::memcpy(reinterpret_cast<float*>(to) + index, from, size_t(count) * sizeof(float));
    return;
  }
  check(dtype == DType::bf16, "keys and values are f32 or bf16");
  auto* out = reinterpret_cast<uint16_t*>(to) + index;
  for (int64_t i = 0; i < count; ++i) out[i] = float_to_bf16(from[i]);
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
  for (const Span& span : args.spans) {
    for_rows(span.rows, span.rows * pairs * 16, [&](int64_t row) {
      for (int64_t j = 0; j < pairs; ++j) {
        // In double: a float angle at position 262143 is off by up to 0.016.
        const double angle = double(span.start + row) * double(args.frequencies.f32()[j]);
        const int64_t index = (span.first_row + row) * pairs + j;
        args.cos.f32()[index] = float(std::cos(angle)) * args.scale;
        args.sin.f32()[index] = float(std::sin(angle)) * args.scale;
      }
    });
  }
}

void CpuOps::rotate_and_store(const RotateAndStoreArgs& args) {
  check_shapes(args);
  const int64_t q_heads = args.q.shape[1], q_stride = args.q.shape[2];
  const int64_t kv_heads = args.k.shape[1], head_dim = args.k.shape[2];
  const int64_t pairs = args.cos.shape[1], page_len = args.kv.keys.shape[2];
  check(head_dim <= kMaxHeadDim, "rotate_and_store: head_dim ", head_dim);
  for (const Span& span : args.spans) {
    for_rows(span.rows, span.rows * (q_heads + 2 * kv_heads) * head_dim, [&](int64_t span_row) {
      const int64_t row = span.first_row + span_row;
      const float* cos = args.cos.f32() + row * pairs;
      const float* sin = args.sin.f32() + row * pairs;
      for (int64_t head = 0; head < q_heads; ++head) {
        float* out = args.out_q.f32() + (row * q_heads + head) * head_dim;
        loops_.rms_norm(args.q.f32() + (row * q_heads + head) * q_stride, args.q_scale.f32(),
                        head_dim, args.eps, out);
        rotate(out, cos, sin, pairs);
      }
      const int64_t position = span.start + span_row;
      const int64_t page = span.pages[size_t(position / page_len)];
      for (int64_t head = 0; head < kv_heads; ++head) {
        alignas(64) float key[kMaxHeadDim];
        loops_.rms_norm(args.k.f32() + (row * kv_heads + head) * head_dim, args.k_scale.f32(),
                        head_dim, args.eps, key);
        rotate(key, cos, sin, pairs);
        const int64_t slot = ((page * kv_heads + head) * page_len + position % page_len) * head_dim;
        store_values(key, head_dim, args.kv.keys.dtype, args.kv.keys.data, slot);
        store_values(args.v.f32() + (row * kv_heads + head) * head_dim, head_dim,
                     args.kv.values.dtype, args.kv.values.data, slot);
      }
    });
  }
}

}  // namespace slip
