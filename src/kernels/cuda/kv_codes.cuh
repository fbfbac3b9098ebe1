// Coded keys and values on the device: where the tail's positions lie, rotation, codes of a vector.
#pragma once

#include "kernels/cuda/device/spans.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/kv_codes.h"

namespace slip {

// KvTail (kernels/kv_tail.h) of a span on the device.
class DeviceKvTail {
 public:
  __device__ DeviceKvTail(const DeviceSpan& span, int64_t page_len)
      : page_len_(page_len),
        start_(span.start),
        first_page_(page_of(span.start)),
        last_page_(page_of(span.start + span.rows)) {}

  __device__ int64_t page_of(int64_t position) const { return position - position % page_len_; }

  __device__ int64_t first_page() const { return first_page_; }
  __device__ int64_t last_page() const { return last_page_; }

  __device__ int64_t place(int64_t position) const { return position % (2 * page_len_); }

  __device__ int64_t beginning_place(int64_t position) const {
    return place(position + (moves_beginning() ? page_len_ : 0));
  }
  __device__ bool moves_beginning() const {
    return last_page_ > first_page_ && place(last_page_) == place(first_page_);
  }

  __device__ int64_t first_written() const {
    return last_page_ - first_page_ <= page_len_ ? start_ : last_page_;
  }

 private:
  int64_t page_len_;
  int64_t start_;
  int64_t first_page_;
  int64_t last_page_;
};

// A row of the step, a place of the tail, a vector of [pages, kv_heads, page_len].
__device__ __forceinline__ float* row_at(const CodedKvSide& kv, const CodedKvShape& shape,
                                         const DeviceSpan& span, int64_t position, int head) {
  const int64_t row = span.first_row + position - span.start;
  return kv.rows + (row * shape.kv_heads + head) * shape.head_dim;
}
__device__ __forceinline__ uint16_t* tail_at(const CodedKvSide& kv, const CodedKvShape& shape,
                                             const DeviceSpan& span, int64_t place, int head) {
  const int64_t heads = int64_t(span.state_slot) * shape.kv_heads + head;
  return kv.tail + (heads * 2 * shape.page_len + place) * shape.head_dim;
}
__device__ __forceinline__ int64_t vector_at(const CodedKvShape& shape, const DeviceSpan& span,
                                             int64_t position, int head) {
  const int64_t page = span.pages[position / shape.page_len];
  return (page * shape.kv_heads + head) * shape.page_len + position % shape.page_len;
}

// 1 / sqrt(dim) of a power of two, both operations rounded; without the calls that those take.
__device__ __forceinline__ float inverse_root(int dim) {
  constexpr float kRootOfTwo = 1.41421356f;
  const int exponent = 31 - __clz(dim);
  return __int_as_float((127 - exponent / 2) << 23) *
         (exponent % 2 == 0 ? 1.0f : 1.0f / kRootOfTwo);
}

// turbo_rotate() and turbo_unrotate() of a vector in shared memory, by one warp that has written it
// and calls __syncwarp() before. Short strides first: the bits are those of the definition.
__device__ __forceinline__ void hadamard(float* x, int dim) {
  const int lane = int(threadIdx.x) % kWarp;
  for (int stride = 1; stride < dim; stride *= 2) {
    for (int pair = lane; pair < dim / 2; pair += kWarp) {
      const int i = 2 * (pair & -stride) + (pair & (stride - 1));
      const float a = x[i], b = x[i + stride];
      x[i] = a + b;
      x[i + stride] = a - b;
    }
    __syncwarp();
  }
  const float norm = inverse_root(dim);
  for (int i = lane; i < dim; i += kWarp) x[i] *= norm;
  __syncwarp();
}

__device__ __forceinline__ void change_signs(float* x, int dim, const SignBits& signs) {
  const int lane = int(threadIdx.x) % kWarp;
  for (int i = lane, word = 0; i < dim; i += kWarp, ++word)
    if (signs.words[word] >> lane & 1) x[i] = -x[i];
  __syncwarp();
}

__device__ __forceinline__ void turbo_rotate(float* x, int dim, const SignBits& signs) {
  change_signs(x, dim, signs);
  hadamard(x, dim);
}

__device__ __forceinline__ void turbo_unrotate(float* x, int dim, const SignBits& signs) {
  hadamard(x, dim);
  change_signs(x, dim, signs);
}

// The same of a vector of which a lane has values lane + 32 e.
template <int kPerLane>
__device__ __forceinline__ void hadamard_in_registers(float (&x)[kPerLane]) {
  const int lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int stride = 1; stride < kWarp; stride *= 2) {
    const float sign = lane & stride ? -1.0f : 1.0f;  // exact in a product
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) x[e] = fmaf(x[e], sign, __shfl_xor_sync(~0u, x[e], stride));
  }
#pragma unroll
  for (int stride = 1; stride < kPerLane; stride *= 2) {
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) {
      if (e & stride) continue;
      const float a = x[e], b = x[e + stride];
      x[e] = a + b;
      x[e + stride] = a - b;
    }
  }
  const float norm = inverse_root(kPerLane * kWarp);
#pragma unroll
  for (int e = 0; e < kPerLane; ++e) x[e] *= norm;
}

template <int kPerLane>
__device__ __forceinline__ void change_signs_in_registers(float (&x)[kPerLane],
                                                          const SignBits& signs) {
#pragma unroll
  for (int e = 0; e < kPerLane; ++e)
    if (signs.words[e] >> (threadIdx.x % kWarp) & 1) x[e] = -x[e];
}

template <int kPerLane>
__device__ __forceinline__ void rotate_in_registers(float (&x)[kPerLane], const SignBits& signs) {
  change_signs_in_registers(x, signs);
  hadamard_in_registers(x);
}

template <int kPerLane>
__device__ __forceinline__ void unrotate_in_registers(float (&x)[kPerLane], const SignBits& signs) {
  hadamard_in_registers(x);
  change_signs_in_registers(x, signs);
}

__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

__device__ __forceinline__ float float_after(float x, int steps) {
  if (x == 0) return float(steps) * __int_as_float(1);
  return __int_as_float(__float_as_int(x) + (x > 0 ? steps : -steps));
}

// The smallest float that reaches a threshold when it is multiplied in double, as the definition
// does: comparing with it takes no double.
__device__ __forceinline__ float smallest_reaching(float threshold, double unit) {
  const auto reaches = [&](float x) { return double(threshold) <= double(x) * unit; };
  float x = float(double(threshold) / unit);
  while (reaches(float_after(x, -1))) x = float_after(x, -1);
  while (!reaches(x)) x = float_after(x, 1);
  return x;
}

// turbo_encode() and turbo_encode_int8() of one vector by one warp: value(d) is its value, codes go
// to `codes`, a byte each; returns the scale as bf16.
template <class Value>
__device__ __forceinline__ uint16_t encode_vector(const DeviceBook& book, int dim,
                                                  const Value& value, uint8_t* codes) {
  constexpr double kShortest = 1e-20;
  const int lane = int(threadIdx.x) % kWarp;
  const int thresholds = (1 << book.bits) - 1;

  double squared = 0;
  float largest = 0;
  for (int d = lane; d < dim; d += kWarp) {
    const float x = value(d);
    squared += double(x) * double(x);
    largest = fmaxf(largest, fabsf(x));
  }
  squared = warp_sum(squared);
  if (!(squared >= kShortest * kShortest && squared <= 1.7976931348623157e308)) {
    const int zero = book.bits == 8 ? 0 : 1 << (book.bits - 1);
    for (int d = lane; d < dim; d += kWarp) codes[d] = uint8_t(zero);
    return 0;
  }

  if (book.bits == 8) {
    const uint16_t scale_bits = bf16_bits(warp_max(largest) / 127.0f);
    const float scale = bf16_value(scale_bits);
    for (int d = lane; d < dim; d += kWarp) codes[d] = uint8_t(int8_t(rintf(value(d) / scale)));
    return scale_bits;
  }

  const double unit = double(book.kappa) * sqrt(double(dim) / squared);
  const float cut = smallest_reaching(book.thresholds[lane < thresholds ? lane : 0], unit);
  double overlap = 0;
  for (int first = 0; first < dim; first += kWarp) {  // shuffles need the whole warp
    const int d = first + lane;
    const float x = d < dim ? value(d) : 0.0f;
    int index = 0;
    for (int i = 0; i < thresholds; ++i) index += x >= __shfl_sync(~0u, cut, i);
    if (d >= dim) continue;
    codes[d] = uint8_t(index);
    overlap += double(x) * double(book.levels[index]);
  }
  overlap = warp_sum(overlap);
  return bf16_bits(float(squared / overlap));
}

}  // namespace slip
