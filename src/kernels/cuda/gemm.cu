// Linear layers of many rows with weights in slabs: a block has 128 outputs x 64 rows, a warp 32
// outputs x all rows. Inputs are rounded beforehand, once for all outputs. Where that makes few
// blocks, each has a part of the inputs, and sums of parts are added up by a second launch.
#include "kernels/cuda/device/instructions.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quads.cuh"
#include "kernels/cuda/slab_formats.cuh"

namespace slip {
namespace {

constexpr int kBlockRows = 64;
constexpr int kRowTiles = kBlockRows / kMmaRows;
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kWarpTiles = 2;
constexpr int kBlockTiles = kWarps * kWarpTiles;
static_assert(kBlockTiles * kTileOut == kFp8Block, "a block has one fp8 scale per slab");

// As many as leave room for two blocks on a multiprocessor, and for one on small ones.
template <class Format>
constexpr int kStages = Format::kFormat == DeviceFormat::f16_slabs ? 2 : 3;

// Rounded inputs: [rows / 64][slabs] of these: a slab of 64 rows (mma.cuh) and its 64 units.
constexpr int kUnitsAt = slab_input_bytes(kBlockRows);
constexpr int kInputBytes = kUnitsAt + kBlockRows * int(sizeof(float));

int64_t row_blocks(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// grid: slabs x groups of 8 rows; one warp, one slab of one row. Rows past the end are zero.
template <bool kQuads>
__global__ void __launch_bounds__(8 * kWarp)
    round_rows_kernel(LinearInput input, std::byte* rounded) {
  let_next_begin();
  wait_for_inputs();
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t slab = blockIdx.x, slabs = gridDim.x;
  const int64_t row = int64_t(blockIdx.y) * 8 + threadIdx.x / kWarp;
  float4 x = make_float4(0, 0, 0, 0);
  if (row < input.rows)
    x = load_quad<kQuads>(input.x + row * input.in, slab * kSlabIn + lane * 4, input.in);
  std::byte* to = rounded + (row / kBlockRows * slabs + slab) * kInputBytes;
  const int row_in_block = int(row % kBlockRows);
  const float unit = round_slab(x, row_in_block, kBlockRows, to);
  if (lane == 0) reinterpret_cast<float*>(to + kUnitsAt)[row_in_block] = unit;
}

struct ManyRows {
  const std::byte* rounded;
  int64_t rows;
  DeviceWeight weight;
  float* out;
  float* part_sums;        // [parts][blocks][64 rows][128 outputs]; of one part: none
  int32_t slabs;           // of a tile
  int32_t slabs_per_part;  // a block has those of part blockIdx.z
  bool add;
};

constexpr int kBlockOutputs = kBlockTiles * kTileOut;
constexpr int kBlockSums = kBlockRows * kBlockOutputs;

// What a block leaves of its part.
__device__ __forceinline__ float* sums_of_block(const ManyRows& work, int part) {
  return work.part_sums +
         (int64_t(part * int(gridDim.y) + int(blockIdx.y)) * gridDim.x + blockIdx.x) * kBlockSums;
}

// Shared memory of one slab on its way.
template <class Format, int kStepsPerScale>
struct Stage {
  static constexpr bool kInt4 = Format::kFormat == DeviceFormat::int4_group;
  static constexpr int kSlabBytes = Format::kWords * 4 * kWarp;
  static constexpr int kTileScaleBytes = kInt4 ? kStepsPerSlab / kStepsPerScale * kTileOut * 2 : 0;
  static constexpr int kSlabsAt = kInputBytes;
  static constexpr int kScalesAt = kSlabsAt + kBlockTiles * kSlabBytes;
  static constexpr int kBytes = kScalesAt + (kInt4 ? kBlockTiles * kTileScaleBytes : 16);
};

// What a thread copies of each slab. Tiles past the last are copies of it: their sums are not
// written.
template <class Format, int kStepsPerScale>
class StageLoader {
  using Shared = Stage<Format, kStepsPerScale>;

 public:
  __device__ StageLoader(const ManyRows& work, int first_tile, int tiles, int first_slab) {
    const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
    inputs_ = work.rounded + (int64_t(blockIdx.x) * work.slabs + first_slab) * kInputBytes;
#pragma unroll
    for (int t = 0; t < kWarpTiles; ++t) {
      const int64_t tile = min(first_tile + warp * kWarpTiles + t, tiles - 1);
      slabs_[t] =
          work.weight.values + (tile * work.slabs + first_slab) * Shared::kSlabBytes + lane * 16;
    }
    scales_ = static_cast<const std::byte*>(work.weight.scales);
    if constexpr (Shared::kInt4) {
      constexpr int kPieces = Shared::kTileScaleBytes / 16;  // of a tile; one thread each
      const int64_t tile = min(first_tile + int(threadIdx.x) / kPieces, tiles - 1);
      scales_ +=
          (tile * work.slabs + first_slab) * Shared::kTileScaleBytes + threadIdx.x % kPieces * 16;
    } else {
      scales_ += (int64_t(blockIdx.y) * work.slabs + first_slab) * int64_t(sizeof(float));
    }
  }

  // The next slab; a group of copies.
  __device__ void load(std::byte* stage) {
    const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
    for (int at = int(threadIdx.x) * 16; at < kInputBytes; at += kThreads * 16)
      copy_16_async(stage + at, inputs_ + at);
    inputs_ += kInputBytes;
#pragma unroll
    for (int t = 0; t < kWarpTiles; ++t) {
      std::byte* slab =
          stage + Shared::kSlabsAt + (warp * kWarpTiles + t) * Shared::kSlabBytes + lane * 16;
#pragma unroll
      for (int at = 0; at < Shared::kSlabBytes; at += kWarp * 16)
        copy_16_async(slab + at, slabs_[t] + at);
      slabs_[t] += Shared::kSlabBytes;
    }
    if constexpr (Shared::kInt4) {
      if (int(threadIdx.x) * 16 < kBlockTiles * Shared::kTileScaleBytes)
        copy_16_async(stage + Shared::kScalesAt + threadIdx.x * 16, scales_);
      scales_ += Shared::kTileScaleBytes;
    } else if constexpr (Format::kFormat == DeviceFormat::fp8_block) {
      if (threadIdx.x == 0) copy_4_async(stage + Shared::kScalesAt, scales_);
      scales_ += sizeof(float);
    }
  }

 private:
  const std::byte* inputs_;
  const std::byte* slabs_[kWarpTiles];
  const std::byte* scales_;
};

using BlockSums = Sums[kWarpTiles][kRowTiles];

template <class Format, int kStepsPerScale>
__device__ __forceinline__ void add_slab(BlockSums& totals, const std::byte* stage) {
  using Shared = Stage<Format, kStepsPerScale>;
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const int first_tile = warp * kWarpTiles;
  const std::byte* slabs = stage + Shared::kSlabsAt + first_tile * Shared::kSlabBytes;
  const std::byte* inputs = stage + slab_offset(0, lane / 4, lane % 4, kBlockRows);
  const auto* units = reinterpret_cast<const float2*>(stage + kUnitsAt) + lane % 4;
  constexpr int kGroups = kStepsPerSlab / kStepsPerScale;
#pragma unroll 1  // one set of sums has room in registers, two have not
  for (int group = 0; group < kGroups; ++group) {
    // All words at once, or, where they are many, a pair of steps'.
    constexpr int kSets = Format::kWords > 16 ? kStepsPerScale / 2 : 1;
    constexpr int kWords = Format::kWords / kGroups / kSets;
    uint32_t words[kWarpTiles][kWords];
    Sums sums[kWarpTiles][kRowTiles];
#pragma unroll
    for (int pair = 0; pair < kStepsPerScale / 2; ++pair) {
      if (pair < kSets)
#pragma unroll
        for (int m = 0; m < kWarpTiles; ++m)
          load_lane_words(slabs + m * Shared::kSlabBytes, (group * kSets + pair) * kWords,
                          words[m]);
      WeightFragment w[kWarpTiles][2];
#pragma unroll
      for (int m = 0; m < kWarpTiles; ++m) {
        const int step = kSets == 1 ? 2 * pair : 0;
        w[m][0] = Format::fragment(words[m], step);
        w[m][1] = Format::fragment(words[m], step + 1);
      }
      // Two tiles of rows at a time: four independent sums hide the latency of one.
#pragma unroll
      for (int n = 0; n < kRowTiles; n += 2) {
        const auto* at = reinterpret_cast<const uint4*>(
            inputs + slab_offset(group * kStepsPerScale / 2 + pair, n * kMmaRows, 0, kBlockRows));
        const uint4 x[2] = {at[0], at[kMmaRows * 4]};
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int m = 0; m < kWarpTiles; ++m) mma(sums[m][n + i], w[m][0], x[i].x, x[i].y);
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int m = 0; m < kWarpTiles; ++m) mma(sums[m][n + i], w[m][1], x[i].z, x[i].w);
      }
    }
    float2 scales[kWarpTiles];
#pragma unroll
    for (int m = 0; m < kWarpTiles; ++m) {
      const std::byte* stored = stage + Shared::kScalesAt;
      if constexpr (Shared::kInt4) {
        scales[m] = lane_scales(stored + (first_tile + m) * Shared::kTileScaleBytes + group * 32);
      } else {
        float scale = 1;  // an output's is the same for all slabs, and left for the end
        if constexpr (Format::kFormat == DeviceFormat::fp8_block)
          scale = *reinterpret_cast<const float*>(stored) * kFp8Factor;
        scales[m] = make_float2(scale, scale);
      }
    }
#pragma unroll
    for (int n = 0; n < kRowTiles; ++n)
#pragma unroll
      for (int m = 0; m < kWarpTiles; ++m)
        add_scaled(totals[m][n], sums[m][n], scales[m], units[n * kMmaRows / 2]);
  }
}

template <DeviceFormat kFormat>
__device__ __forceinline__ void write_output(const ManyRows& work, int64_t row, int64_t output,
                                             float sum) {
  if (row >= work.rows || output >= work.weight.out) return;
  if constexpr (has_output_scales(kFormat))
    sum *= static_cast<const float*>(work.weight.scales)[output];
  float* out = work.out + row * work.weight.out + output;
  *out = work.add ? *out + sum : sum;
}

// grid: blocks of rows x blocks of outputs x parts; those that run together read the same weights.
template <class Format, int kStepsPerScale>
__global__ void __launch_bounds__(kThreads, 2)
    many_rows_kernel(const __grid_constant__ ManyRows work) {
  using Shared = Stage<Format, kStepsPerScale>;
  std::byte* const shared = launch_memory;
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const int first_tile = int(blockIdx.y) * kBlockTiles;
  const int tiles = int((work.weight.out + kTileOut - 1) / kTileOut);

  const int first_slab = int(blockIdx.z) * work.slabs_per_part;
  const int slabs = min(work.slabs_per_part, work.slabs - first_slab);

  wait_for_inputs();
  StageLoader<Format, kStepsPerScale> loader(work, first_tile, tiles, first_slab);
  for (int slab = 0; slab < kStages<Format> - 1; ++slab) {
    if (slab < slabs) loader.load(shared + slab * Shared::kBytes);
    end_copy_group();
  }
  BlockSums totals;
  int use = 0, fill = kStages<Format> - 1;
  for (int slab = 0; slab < slabs; ++slab) {
    wait_for_copies<kStages<Format> - 2>();
    __syncthreads();  // everybody's copies are here, and nobody reads the stage before any more
    if (slab + kStages<Format> - 1 < slabs) loader.load(shared + fill * Shared::kBytes);
    end_copy_group();
    add_slab<Format, kStepsPerScale>(totals, shared + use * Shared::kBytes);
    use = use + 1 == kStages<Format> ? 0 : use + 1;
    fill = fill + 1 == kStages<Format> ? 0 : fill + 1;
  }
  let_next_begin();

  // take(row, output, sum), both counted from the block's first.
  const auto for_each_sum = [&](const auto& take) {
#pragma unroll
    for (int m = 0; m < kWarpTiles; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int n = 0; n < kRowTiles; ++n)
#pragma unroll
          for (int odd = 0; odd < 2; ++odd)
            take(n * kMmaRows + lane % 4 * 2 + odd,
                 (warp * kWarpTiles + m) * kTileOut + half * 8 + lane / 4,
                 totals[m][n].v[half * 2 + odd]);
  };
  if (gridDim.z > 1) {
    float* sums = sums_of_block(work, int(blockIdx.z));
    for_each_sum([&](int row, int output, float sum) { sums[row * kBlockOutputs + output] = sum; });
  } else {
    for_each_sum([&](int row, int output, float sum) {
      write_output<Format::kFormat>(work, int64_t(blockIdx.x) * kBlockRows + row,
                                    int64_t(first_tile) * kTileOut + output, sum);
    });
  }
}

// Block (rows, outputs, some of the rows), a thread per output.
constexpr int kRowsToAdd = 8;
template <DeviceFormat kFormat>
__global__ void __launch_bounds__(kBlockOutputs)
    add_parts_kernel(const __grid_constant__ ManyRows work, int parts) {
  let_next_begin();
  wait_for_inputs();
  const int output = int(threadIdx.x), first_row = int(blockIdx.z) * kRowsToAdd;
#pragma unroll
  for (int i = 0; i < kRowsToAdd; ++i) {
    const int row = first_row + i;
    float sum = 0;
    for (int part = 0; part < parts; ++part)
      sum += sums_of_block(work, part)[row * kBlockOutputs + output];
    write_output<kFormat>(work, int64_t(blockIdx.x) * kBlockRows + row,
                          int64_t(blockIdx.y) * kBlockOutputs + output, sum);
  }
}

// Blocks that occupy the device, whose parts' sums there is memory for.
int64_t wanted_blocks(const Launcher& launcher) { return 2 * launcher.multiprocessors; }

template <class Format, int kStepsPerScale>
void launch_many_rows(const Launcher& launcher, ManyRows work) {
  constexpr size_t kShared = size_t{kStages<Format>} * Stage<Format, kStepsPerScale>::kBytes;
  constexpr int kFewestSlabs = 4;  // of a part
  allow_shared(many_rows_kernel<Format, kStepsPerScale>, kShared);
  const int64_t rows = row_blocks(work.rows);
  const int64_t outputs = (work.weight.out + kBlockOutputs - 1) / kBlockOutputs;
  const int64_t most =
      std::min(wanted_blocks(launcher) / (rows * outputs), int64_t{work.slabs} / kFewestSlabs);
  work.slabs_per_part = most > 1 ? int32_t((work.slabs + most - 1) / most) : work.slabs;
  const int parts = (work.slabs + work.slabs_per_part - 1) / work.slabs_per_part;
  launch(launcher, dim3(unsigned(rows), unsigned(outputs), unsigned(parts)), kThreads, kShared,
         many_rows_kernel<Format, kStepsPerScale>, work);
  if (parts > 1)
    launch(launcher, dim3(unsigned(rows), unsigned(outputs), kBlockRows / kRowsToAdd),
           kBlockOutputs, 0, add_parts_kernel<Format::kFormat>, work, parts);
}

}  // namespace

size_t rounded_rows_bytes(int64_t rows, int64_t in) {
  return size_t(row_blocks(rows) * slab_count(in)) * kInputBytes;
}

size_t many_rows_sums_bytes(const Launcher& launcher) {
  return size_t(wanted_blocks(launcher)) * kBlockSums * sizeof(float);
}

void round_rows(const Launcher& launcher, const LinearInput& input, std::byte* rounded) {
  const dim3 grid(unsigned(slab_count(input.in)),
                  unsigned(row_blocks(input.rows) * kBlockRows / 8));
  launch(launcher, grid, 8 * kWarp, 0,
         input.quads ? round_rows_kernel<true> : round_rows_kernel<false>, input, rounded);
}

void linear_many_rows(const Launcher& launcher, const std::byte* rounded, float* part_sums,
                      int64_t rows, const DeviceWeight& weight, float* out, bool add) {
  const auto slabs = int32_t(slab_count(weight.in));
  const ManyRows work{.rounded = rounded,
                      .rows = rows,
                      .weight = weight,
                      .out = out,
                      .part_sums = part_sums,
                      .slabs = slabs,
                      .slabs_per_part = slabs,
                      .add = add};
  switch (weight.format) {
    case DeviceFormat::f16_slabs: return launch_many_rows<F16Slab, 8>(launcher, work);
    case DeviceFormat::int8_row: return launch_many_rows<Int8Slab, 8>(launcher, work);
    case DeviceFormat::fp8_block: return launch_many_rows<Fp8Slab, 8>(launcher, work);
    case DeviceFormat::int4_group:
      if (weight.group == 128) return launch_many_rows<Int4Slab, 8>(launcher, work);
      if (weight.group == 64) return launch_many_rows<Int4Slab, 4>(launcher, work);
      return launch_many_rows<Int4Slab, 2>(launcher, work);
    default: unreachable("DeviceFormat");
  }
}

}  // namespace slip
