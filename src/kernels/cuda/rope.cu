#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/kv_codes.h"
#include "kernels/cuda/rope.cuh"
#include "kernels/dims.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

constexpr int kTableThreads = 128;
constexpr int kWarps = 8;  // of a block, each with one head at a time

// Angles in double: a float is off by up to 0.016 at position 262143.
__global__ void rope_table_kernel(const float* frequencies, float scale, float* cos_out,
                                  float* sin_out, int64_t rows, int64_t pairs,
                                  const DeviceSpan* spans, int span_count) {
  let_next_begin();
  wait_for_inputs();
  const int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= rows * pairs) return;
  const int64_t row = index / pairs;
  const DeviceSpan* span = span_of_row(spans, span_count, row);
  if (!span) return;
  const int64_t position = span->start + row - span->first_row;
  const double angle = double(position) * double(frequencies[index % pairs]);
  cos_out[index] = float(cos(angle) * double(scale));
  sin_out[index] = float(sin(angle) * double(scale));
}

// float_to_fp8() on the device.
__device__ __forceinline__ uint8_t fp8_bits(float value) {
  const uint32_t sign = __float_as_uint(value) >> 31 << 7;
  if (isnan(value)) return uint8_t(sign | 0x7f);
  const float magnitude = fminf(fabsf(value), kFp8Max);
  if (magnitude < 0x1p-6f) return uint8_t(sign | uint32_t(rintf(magnitude * 0x1p9f)));
  const uint32_t bits = __float_as_uint(magnitude);
  const uint32_t rounded = bits + 0x7ffffu + ((bits >> 20) & 1);
  return uint8_t(sign | (rounded - (120u << 23)) >> 20);
}

__device__ __forceinline__ void store_plain(float* to, float value) { *to = value; }
__device__ __forceinline__ void store_plain(uint16_t* to, float value) { *to = bf16_bits(value); }
__device__ __forceinline__ void store_plain(uint8_t* to, float value) { *to = fp8_bits(value); }

// A warp per row and head: of queries, then of keys, then of values. kMost values to a lane.
template <class Element, int kMost>
__global__ void rotate_and_store_kernel(const __grid_constant__ RotateParams p, Element* keys,
                                        Element* values, int page_len) {
  auto* const heads = reinterpret_cast<float*>(launch_memory);  // [kWarps, head_dim]
  const int warp = int(threadIdx.x) / kWarp, items = p.q_heads + 2 * p.kv_heads;
  const uint32_t index = blockIdx.x * kWarps + uint32_t(warp);  // narrow: division takes long
  const int row = int(index / uint32_t(items)), item = int(index % uint32_t(items));
  if (row >= p.rows) return;
  float* head = heads + warp * p.head_dim;
  const bool is_query = item < p.q_heads, is_key = !is_query && item < p.q_heads + p.kv_heads;
  const int kv_head = item - p.q_heads - (is_key ? 0 : p.kv_heads);
  // Spans come from the host, so that the place is found while the kernel in front ends.
  Element* to = nullptr;
  if (!is_query) {
    const DeviceSpan* span = span_of_row(p.spans, p.span_count, row);
    if (!span) return;
    const int64_t position = span->start + row - span->first_row;
    const int64_t page = span->page(position / page_len, p.ring_pages);
    const int64_t vector = (page * p.kv_heads + kv_head) * page_len + position % page_len;
    to = (is_key ? keys : values) + vector * p.head_dim;
    const int at = int(threadIdx.x) % kWarp * (kLineBytes / int(sizeof(Element)));
    if (at < p.head_dim) prefetch_line(to + at);  // no cache knows the page any more
  }
  wait_for_inputs();
  let_next_begin();
  const int64_t query = int64_t(row) * p.q_heads + item;
  const float* from =
      is_query ? p.q + query * p.q_stride
               : (is_key ? p.k : p.v) + (int64_t(row) * p.kv_heads + kv_head) * p.head_dim;
  const bool is_value = !is_query && !is_key;
  if (!is_value || p.norm_v)  // one call: what a step runs through once should be little code
    normalise_and_rotate<kMost>(p, row, from,
                                is_query ? p.q_scale
                                : is_key ? p.k_scale
                                         : nullptr,
                                is_value ? 0 : p.pairs, head);
  else
    for_head<kMost>(p.head_dim, [&](int i) { head[i] = from[i]; });
  if (is_query)
    for_head<kMost>(p.head_dim, [&](int i) { p.out_q[query * p.head_dim + i] = head[i]; });
  else
    for_head<kMost>(p.head_dim, [&](int i) { store_plain(to + i, head[i]); });
}

}  // namespace

void CudaOps::rope_table(const RopeTableArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t values = dims["rows"] * dims["pairs"];
  if (values == 0) return;
  const auto blocks = unsigned((values + kTableThreads - 1) / kTableThreads);
  launch(launcher_, blocks, kTableThreads, 0, rope_table_kernel, args.frequencies.f32(), args.scale,
         args.cos.f32(), args.sin.f32(), dims["rows"], dims["pairs"], spans_on_device(args.spans),
         int(args.spans.size()));
}

void CudaOps::rotate_and_store(const RotateAndStoreArgs& args) {
  const Dims dims = check_shapes(args);
  if (dims["rows"] == 0 || args.spans.empty()) return;
  const DeviceSpan* spans = spans_on_device(args.spans);
  const bool queries_alone = args.k.empty();
  if (args.kv.recipe.coded() && !queries_alone) {
    if (args.norm_v) {
      const View v = args.v.reshaped({dims["rows"] * dims["kv_heads"], dims["head_dim"]});
      rms_norm({.x = v, .scale = {}, .out = v, .eps = args.eps});
    }
    return rotate_and_store_coded(launcher_, args, spans);
  }

  const RotateParams params = rotate_params(args, spans);
  const int64_t warps = params.rows * (params.q_heads + 2 * params.kv_heads);
  const auto blocks = unsigned((warps + kWarps - 1) / kWarps);
  const size_t shared = size_t(kWarps) * size_t(params.head_dim) * sizeof(float);
  const auto start = [&]<class Element>(Element* keys, Element* values, int page_len) {
    constexpr int kUsual = 256 / kWarp, kWide = kWidestHead / kWarp;
    const auto kernel = params.head_dim <= 256 ? rotate_and_store_kernel<Element, kUsual>
                                               : rotate_and_store_kernel<Element, kWide>;
    launch(launcher_, blocks, kWarps * kWarp, shared, kernel, params, keys, values, page_len);
  };
  if (queries_alone) return start(static_cast<float*>(nullptr), static_cast<float*>(nullptr), 1);
  const auto start_with = [&]<class Element>(DType dtype, Element) {
    start(args.kv.keys.as<Element>(dtype), args.kv.values.as<Element>(dtype),
          int(dims["page_len"]));
  };
  switch (args.kv.keys.dtype) {
    case DType::f32: return start_with(DType::f32, float{});
    case DType::bf16: return start_with(DType::bf16, uint16_t{});
    case DType::fp8_e4m3: return start_with(DType::fp8_e4m3, uint8_t{});
    default: unreachable("type of keys and values");
  }
}

}  // namespace slip
