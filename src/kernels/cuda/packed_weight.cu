#include <algorithm>
#include <cstring>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/packed_weight.h"

namespace slip {
namespace {

// Weights pass through a lane in pieces of about this size: a head of a gigabyte needs no gigabyte
// beside it. One lane is bound by the processor that fills it; together they reach a disk's speed.
constexpr size_t kStagedBytes = size_t{16} << 20;
constexpr int kMostLanes = 8;
constexpr int kThreads = 256;

// Whole tiles of a plain weight, and where they go.
struct Part {
  const std::byte* values;  // plain, on the device; the part's first output
  std::byte* slabs;
  float* units;            // of 16 bits only
  const uint16_t* scales;  // int4 only
  uint16_t* packed_scales;
  int64_t outputs, in;
  int64_t slabs_per_tile;
  int32_t group;
};

// Nibbles of four inputs, as stored, to the places where unpack_int4() wants them.
__device__ __forceinline__ uint32_t spread_nibbles(uint32_t four) {
  return (four & 0xf) | (four & 0xf0) << 12 | (four & 0xf00) | (four & 0xf000) << 12;
}

__device__ __forceinline__ uint32_t int4_word(const Part& part, int64_t output, int64_t input) {
  const auto codes = [&](int64_t o) -> uint32_t {
    if (o >= part.outputs || input >= part.in) return 0;
    return *reinterpret_cast<const uint16_t*>(part.values + (o * part.in + input) / 2);
  };
  return spread_nibbles(codes(output)) | spread_nibbles(codes(output + 8)) << 4;
}

__device__ __forceinline__ uint32_t byte_word(const Part& part, int64_t output, int64_t input) {
  uint32_t word = 0;
  if (output >= part.outputs) return word;
  const auto* row = reinterpret_cast<const uint8_t*>(part.values) + output * part.in;
  for (int i = 0; i < 4; ++i)
    if (input + i < part.in) word |= uint32_t(row[input + i]) << (8 * i);
  return word;
}

template <WeightFormat kFormat>
__device__ __forceinline__ float float_at(const Part& part, int64_t output, int64_t input) {
  if (output >= part.outputs || input >= part.in) return 0;
  const uint16_t bits = reinterpret_cast<const uint16_t*>(part.values)[output * part.in + input];
  return kFormat == WeightFormat::bf16 ? bf16_value(bits) : __half2float(__ushort_as_half(bits));
}

// Two weights as f16, in the unit of their output.
template <WeightFormat kFormat>
__device__ __forceinline__ uint32_t f16_word(const Part& part, int64_t output, int64_t input) {
  if (output >= part.outputs) return 0;
  const float inverse = 1 / part.units[output];  // a power of two
  return half2_bits(__floats2half2_rn(float_at<kFormat>(part, output, input) * inverse,
                                      float_at<kFormat>(part, output, input + 1) * inverse));
}

// One warp, one output: the power of two in whose units its largest weight is below 2^15.
template <WeightFormat kFormat>
__global__ void find_units_kernel(Part part) {
  wait_for_inputs();
  const int64_t output = int64_t(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (output >= part.outputs) return;
  float largest = 0;
  for (int64_t input = threadIdx.x % kWarp; input < part.in; input += kWarp)
    largest = fmaxf(largest, fabsf(float_at<kFormat>(part, output, input)));
  largest = warp_max(largest);
  constexpr int kBits = 15, kLeast = -100, kMost = 100;  // so that the inverse is a number, too
  int exponent = 0;
  frexpf(largest, &exponent);
  if (threadIdx.x % kWarp == 0)
    part.units[output] = largest == 0 ? 1 : ldexpf(1, min(max(exponent - kBits, kLeast), kMost));
}

// One thread, one piece of 16 bytes.
template <WeightFormat kFormat>
__global__ void pack_slabs_kernel(Part part, int64_t pieces) {
  wait_for_inputs();
  const int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= pieces) return;
  constexpr bool kInt4 = kFormat == WeightFormat::int4_group;
  constexpr bool kWide = kFormat == WeightFormat::bf16 || kFormat == WeightFormat::f16;
  constexpr int kPieces = kInt4 ? 2 : kWide ? 8 : 4;
  const int lane = int(index % kWarp);
  const int piece = int(index / kWarp % kPieces);
  const int64_t slab = index / (kWarp * kPieces) % part.slabs_per_tile;
  const int64_t tile = index / (kWarp * kPieces) / part.slabs_per_tile;
  const int64_t output = tile * kTileOut + lane / 4;
  const int64_t input = slab * kSlabIn + lane % 4 * 4;
  uint32_t words[4];
  for (int i = 0; i < 4; ++i) {
    if constexpr (kInt4)
      words[i] = int4_word(part, output, input + (piece * 4 + i) * 16);
    else if constexpr (kWide)
      words[i] = f16_word<kFormat>(part, output + i % 2 * 8, input + piece * 16 + i / 2 * 2);
    else
      words[i] = byte_word(part, output + i % 2 * 8, input + (piece * 2 + i / 2) * 16);
  }
  reinterpret_cast<uint4*>(part.slabs)[index] = make_uint4(words[0], words[1], words[2], words[3]);
}

// One thread, one scale.
__global__ void pack_int4_scales_kernel(Part part, int64_t count) {
  wait_for_inputs();
  const int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= count) return;
  const int64_t per_tile = part.slabs_per_tile * (kSlabIn / part.group);
  const int64_t group = index / kTileOut % per_tile;
  const int place = int(index % kTileOut);
  const int64_t output = index / kTileOut / per_tile * kTileOut + place / 2 + place % 2 * 8;
  const int64_t groups = part.in / part.group;
  const bool exists = output < part.outputs && group < groups;
  part.packed_scales[index] = exists ? part.scales[output * groups + group] : uint16_t(0);
}

unsigned blocks_for(int64_t threads) { return unsigned((threads + kThreads - 1) / kThreads); }

}  // namespace

class WeightPacker::Lane {
 public:
  Lane() { cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Lane() {
    cudaStreamSynchronize(stream_);
    cudaFreeHost(pinned_);
    cudaFree(staged_);
    cudaStreamDestroy(stream_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void pack(Launcher launcher, const Weight& plain, std::byte* storage) {
    launcher.stream = stream_;
    if (in_slabs(device_format(plain.info)))
      pack_slabs(launcher, plain, storage);
    else
      copy_rows(plain, storage);
    cuda_check(cudaStreamSynchronize(stream_));
  }

 private:
  // Both have so many bytes from here on. What was in them is used up.
  void make_room(size_t bytes) {
    cuda_check(cudaStreamSynchronize(stream_));
    if (bytes <= bytes_) return;
    cuda_check(cudaFreeHost(pinned_));
    cuda_check(cudaFree(staged_));
    void* pinned = nullptr;
    void* staged = nullptr;
    cuda_check(cudaMallocHost(&pinned, bytes));
    cuda_check(cudaMalloc(&staged, bytes));
    pinned_ = static_cast<std::byte*>(pinned);
    staged_ = static_cast<std::byte*>(staged);
    bytes_ = bytes;
  }

  // Through place `at` of the lane's memory.
  void copy_in(std::byte* to, const std::byte* from, size_t bytes, size_t at) {
    std::memcpy(pinned_ + at, from, bytes);
    cuda_check(cudaMemcpyAsync(to, pinned_ + at, bytes, cudaMemcpyHostToDevice, stream_));
  }

  void copy_rows(const Weight& plain, std::byte* storage) {
    const WeightInfo& info = plain.info;
    const size_t padded = padded_row_bytes(info), bytes = plain.values.bytes() / size_t(info.out);
    const auto at_once = std::max<int64_t>(1, int64_t(kStagedBytes / padded));
    for (int64_t first = 0; first < info.out; first += at_once) {
      const auto rows = size_t(std::min(at_once, info.out - first));
      make_room(rows * padded);
      const std::byte* from = plain.values.data + size_t(first) * bytes;
      if (padded == bytes) {
        std::memcpy(pinned_, from, rows * bytes);
      } else {
        std::memset(pinned_, 0, rows * padded);
        for (size_t row = 0; row < rows; ++row)
          std::memcpy(pinned_ + row * padded, from + row * bytes, bytes);
      }
      cuda_check(cudaMemcpyAsync(storage + size_t(first) * padded, pinned_, rows * padded,
                                 cudaMemcpyHostToDevice, stream_));
    }
  }

  void pack_slabs(const Launcher& launcher, const Weight& plain, std::byte* storage) {
    const WeightInfo& info = plain.info;
    const bool int4 = info.format == WeightFormat::int4_group;
    const int64_t slabs_per_tile = slab_count(info.in);
    const int64_t scales_per_tile = int4 ? slabs_per_tile * (kSlabIn / info.group) * kTileOut : 0;
    const bool wide = info.format == WeightFormat::bf16 || info.format == WeightFormat::f16;
    const size_t row_bytes = size_t(int4 ? info.in / 2 : wide ? info.in * 2 : info.in);
    auto* units = reinterpret_cast<float*>(storage + slabs_bytes(info));
    if (wide) cuda_check(cudaMemsetAsync(units, 0, slab_scale_bytes(info), stream_));
    const size_t row_scale_bytes = int4 ? size_t(info.in / info.group) * sizeof(uint16_t) : 0;
    const int64_t rows_at_once =
        std::max<int64_t>(1, int64_t(kStagedBytes / (row_bytes * kTileOut))) * kTileOut;
    for (int64_t first = 0; first < info.out; first += rows_at_once) {
      const int64_t rows = std::min(rows_at_once, info.out - first);
      const int64_t tile = first / kTileOut, tiles = tile_count(rows);
      const size_t value_bytes = size_t(rows) * row_bytes;
      const size_t scales_at = (value_bytes + 255) / 256 * 256;
      make_room(scales_at + size_t(rows) * row_scale_bytes);
      copy_in(staged_, plain.values.data + size_t(first) * row_bytes, value_bytes, 0);
      Part part{};
      part.values = staged_;
      part.slabs =
          storage + size_t(tile * slabs_per_tile) * size_t(slab_bytes(device_format(info)));
      part.units = units + first;
      part.outputs = rows;
      part.in = info.in;
      part.slabs_per_tile = slabs_per_tile;
      part.group = info.group;
      const int64_t pieces = tiles * slabs_per_tile * (slab_bytes(device_format(info)) / 16);
      if (wide) {
        const bool bf16 = info.format == WeightFormat::bf16;
        launch(launcher, blocks_for(rows * kWarp), kThreads, 0,
               bf16 ? find_units_kernel<WeightFormat::bf16> : find_units_kernel<WeightFormat::f16>,
               part);
        launch(launcher, blocks_for(pieces), kThreads, 0,
               bf16 ? pack_slabs_kernel<WeightFormat::bf16> : pack_slabs_kernel<WeightFormat::f16>,
               part, pieces);
        continue;
      }
      if (!int4) {
        launch(launcher, blocks_for(pieces), kThreads, 0, pack_slabs_kernel<WeightFormat::int8_row>,
               part, pieces);
        continue;
      }
      copy_in(staged_ + scales_at, plain.scales.data + size_t(first) * row_scale_bytes,
              size_t(rows) * row_scale_bytes, scales_at);
      part.scales = reinterpret_cast<const uint16_t*>(staged_ + scales_at);
      part.packed_scales =
          reinterpret_cast<uint16_t*>(storage + slabs_bytes(info)) + tile * scales_per_tile;
      const int64_t scales = tiles * scales_per_tile;
      launch(launcher, blocks_for(pieces), kThreads, 0, pack_slabs_kernel<WeightFormat::int4_group>,
             part, pieces);
      launch(launcher, blocks_for(scales), kThreads, 0, pack_int4_scales_kernel, part, scales);
    }
    if (int4 || wide) return;
    const size_t bytes = plain.scales.bytes(), all = slab_scale_bytes(info);
    make_room(all);
    copy_in(storage + slabs_bytes(info), plain.scales.data, bytes, 0);
    if (all > bytes)
      cuda_check(cudaMemsetAsync(storage + slabs_bytes(info) + bytes, 0, all - bytes, stream_));
  }

  cudaStream_t stream_ = nullptr;
  std::byte* pinned_ = nullptr;
  std::byte* staged_ = nullptr;
  size_t bytes_ = 0;
};

WeightPacker::WeightPacker() = default;
WeightPacker::~WeightPacker() = default;

std::unique_ptr<WeightPacker::Lane> WeightPacker::take_lane() {
  std::unique_lock lock(mutex_);
  if (free_.empty() && lanes_ < kMostLanes) {
    ++lanes_;
    lock.unlock();
    return std::make_unique<Lane>();
  }
  returned_.wait(lock, [this] { return !free_.empty(); });
  std::unique_ptr<Lane> lane = std::move(free_.back());
  free_.pop_back();
  return lane;
}

void WeightPacker::return_lane(std::unique_ptr<Lane> lane) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(lane));
  }
  returned_.notify_one();
}

void WeightPacker::release() {
  const std::lock_guard lock(mutex_);
  lanes_ -= int(free_.size());
  free_.clear();
}

Weight WeightPacker::pack(const Launcher& launcher, const Weight& plain,
                          std::span<std::byte> storage) {
  const WeightInfo& info = plain.info;
  const size_t bytes = cuda_packed_bytes(info);
  check(!plain.packed && storage.size() >= bytes, "pack: ", storage.size(), " bytes for ", bytes);
  check(reinterpret_cast<uintptr_t>(storage.data()) % 16 == 0, "pack: storage is not aligned");
  use_device(launcher.device);
  // Lanes do not wait for the launcher's stream, which may still be clearing this memory, or be
  // reading what it held before.
  cuda_check(cudaStreamSynchronize(launcher.stream));
  std::unique_ptr<Lane> lane = take_lane();
  lane->pack(launcher, plain, storage.data());
  return_lane(std::move(lane));
  return {info, {storage.data(), DType::u8, {int64_t(bytes)}}, {}, true};
}

Weight CudaOps::pack(const Weight& plain, std::span<std::byte> storage) {
  return packer_.pack(launcher_, plain, storage);
}

}  // namespace slip
