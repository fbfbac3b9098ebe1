// Random weights of full size, made where they will be used: no files, no copies.
#include <cmath>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"

namespace slip {
namespace {

// The finaliser of splitmix64: neighbouring numbers become unrelated ones.
__device__ uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Uniform in [-1, 1).
__device__ float signed_unit(uint32_t bits) { return float(int32_t(bits)) * 0x1p-31f; }

// 8 bytes per thread. A byte of fp8 that is NaN becomes another.
__global__ void fill_codes(uint64_t* values, int64_t words, uint64_t seed, bool fp8) {
  wait_for_inputs();
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= words) return;
  uint64_t word = mixed(seed + uint64_t(i));
  if (fp8) word &= ~0x4040404040404040u;  // at most 1.875: no NaN, and a narrower spread
  values[i] = word;
}

__global__ void fill_bf16(uint16_t* values, int64_t count, uint64_t seed, float scale) {
  wait_for_inputs();
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = bf16_bits(signed_unit(uint32_t(mixed(seed + uint64_t(i)))) * scale);
}

__global__ void fill_f16(__half* values, int64_t count, uint64_t seed) {
  wait_for_inputs();
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = __float2half(signed_unit(uint32_t(mixed(seed + uint64_t(i)))));
}

__global__ void fill_scales_f16(__half* values, int64_t count, uint64_t seed, float scale) {
  wait_for_inputs();
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = __float2half(mixed(seed + uint64_t(i)) & 1 ? scale : -scale);
}

__global__ void fill_scales_f32(float* values, int64_t count, float scale) {
  wait_for_inputs();
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = scale;
}

}  // namespace

bool CudaOps::make_noise(const WeightInfo& info, uint64_t seed, std::span<std::byte> storage,
                         Weight& weight) {
  if (info.format == WeightFormat::f32 || info.format == WeightFormat::f16) return false;
  constexpr int kThreads = 256;
  const auto over = [&](int64_t count, auto kernel, auto... arguments) {
    launch(launcher_, dim3(unsigned((count + kThreads - 1) / kThreads)), dim3(kThreads), 0, kernel,
           arguments...);
  };
  // Keeps the variance of activations near one through a layer.
  const float scale = 1.7f / std::sqrt(float(info.in));
  std::byte* data = storage.data();
  const DeviceFormat format = device_format(info);
  if (format == DeviceFormat::bf16) {
    const auto count = int64_t(storage.size() / 2);
    over(count, fill_bf16, reinterpret_cast<uint16_t*>(data), count, seed, scale);
  } else {
    const auto all = int64_t(slabs_bytes(info));
    if (format == DeviceFormat::f16_slabs)
      over(all / 2, fill_f16, reinterpret_cast<__half*>(data), all / 2, seed);
    else
      over(all / 8, fill_codes, reinterpret_cast<uint64_t*>(data), all / 8, seed,
           format == DeviceFormat::fp8_block);
    std::byte* scales = data + slabs_bytes(info);
    const size_t bytes = slab_scale_bytes(info);
    if (format == DeviceFormat::int4_group) {
      over(int64_t(bytes / 2), fill_scales_f16, reinterpret_cast<__half*>(scales),
           int64_t(bytes / 2), seed, scale / 8);
    } else {
      const float unit = format == DeviceFormat::int8_row ? scale / 127 : scale;
      over(int64_t(bytes / 4), fill_scales_f32, reinterpret_cast<float*>(scales),
           int64_t(bytes / 4), unit);
    }
  }
  weight = {info, View{data, DType::u8, {int64_t(storage.size())}}, {}, true};
  return true;
}

}  // namespace slip
