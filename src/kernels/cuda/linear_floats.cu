// Linear layers of many rows with weights in plain rows, on tensor cores and yet sums of floats: a
// float is the sum of three bf16, exactly, and so are weights of one (bf16), two (f16) or three
// (f32). Every part of a weight meets every part of an input.
//
// In the models that this backend is made for these are routers and other narrow layers: tiles are
// as small as it takes to occupy the device, and the warps of a block share a tile's inputs.
#include <algorithm>

#include "kernels/cuda/device/instructions.cuh"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quads.cuh"

namespace slip {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kSlice = 32;  // inputs: a lane takes 8 l % 4 .. + 7, in two steps of four
constexpr int kPieceBytes = 16;
constexpr int kMostShared = 96 * 1024;  // small devices have 99 KB, large ones room for two blocks
constexpr int kMostStages = 4;

// Eight values of a lane: pairs 0 and 1 are for the first step, 2 and 3 for the second.
template <int kParts>
struct LaneValues {
  uint32_t pairs[kParts][4];
};

// Cuts upper bits off, eight significant ones at a time, so that nothing is rounded.
template <int kParts>
__device__ __forceinline__ void split_pair(float a, float b, LaneValues<kParts>& values, int pair) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const uint32_t a_bits = __float_as_uint(a), b_bits = __float_as_uint(b);
    values.pairs[part][pair] = __byte_perm(a_bits, b_bits, 0x7632);
    a -= __uint_as_float(a_bits & 0xffff0000);
    b -= __uint_as_float(b_bits & 0xffff0000);
  }
}

// Slices of rows in shared memory: where pieces lie so that eight lanes meet all banks, and the
// values of a lane's quarter.
template <int kValueBytes>
struct Slices {
  static constexpr int kPieces = kSlice * kValueBytes / kPieceBytes;
  static constexpr int kRowBytes = kSlice * kValueBytes;
  __device__ static int offset(int row, int piece) {
    if constexpr (kValueBytes == 4) piece ^= row & 1;
    return row * kRowBytes + piece * kPieceBytes;
  }
  __device__ static uint4 load(const std::byte* slice, int row, int piece) {
    return *reinterpret_cast<const uint4*>(slice + offset(row, piece));
  }
};

struct F32Slices : Slices<4> {
  static constexpr int kParts = 3;
  __device__ static LaneValues<kParts> values(const std::byte* slice, int row, int quarter) {
    LaneValues<kParts> result;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4 quad = load(slice, row, 2 * quarter + i);
      split_pair(__uint_as_float(quad.x), __uint_as_float(quad.y), result, 2 * i);
      split_pair(__uint_as_float(quad.z), __uint_as_float(quad.w), result, 2 * i + 1);
    }
    return result;
  }
};

struct Bf16Slices : Slices<2> {
  static constexpr int kParts = 1;
  __device__ static LaneValues<kParts> values(const std::byte* slice, int row, int quarter) {
    const uint4 piece = load(slice, row, quarter);
    return {{{piece.x, piece.y, piece.z, piece.w}}};
  }
};

struct F16Slices : Slices<2> {
  static constexpr int kParts = 2;
  __device__ static LaneValues<kParts> values(const std::byte* slice, int row, int quarter) {
    const uint4 piece = load(slice, row, quarter);
    const uint32_t halves[4] = {piece.x, piece.y, piece.z, piece.w};
    LaneValues<kParts> result;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 two = __half22float2(bits_half2(halves[i]));
      split_pair(two.x, two.y, result, i);
    }
    return result;
  }
};

// A block's outputs and rows, and how many warps share each and the inputs.
template <int kOutputs_, int kRows_, int kOutputWarps_, int kRowWarps_>
struct Tiling {
  static constexpr int kOutputs = kOutputs_, kRows = kRows_;
  static constexpr int kOutputWarps = kOutputWarps_, kRowWarps = kRowWarps_;
  static constexpr int kSliceWarps = kWarps / (kOutputWarps * kRowWarps);
  static constexpr int kDepth = kSlice * kSliceWarps;                      // inputs of a stage
  static constexpr int kOutputTiles = kOutputs / kOutputWarps / kTileOut;  // of a warp
  static constexpr int kRowTiles = kRows / kRowWarps / kMmaRows;
  using WarpSums = Sums[kOutputTiles][kRowTiles];
};

template <class Format, class Tile>
struct Stage {
  static constexpr int kInputSlice = Tile::kRows * F32Slices::kRowBytes;
  static constexpr int kWeightSlice = Tile::kOutputs * Format::kRowBytes;
  static constexpr int kWeightsAt = kInputSlice * Tile::kSliceWarps;
  static constexpr int kBytes = kWeightsAt + kWeightSlice * Tile::kSliceWarps;
  static constexpr int kStages = std::min(kMostShared / kBytes, kMostStages);
  static_assert(kStages >= 2);
};

// Brings inputs [k, k + kDepth) of up to kRows rows. Past the ends of rows there are zeros; rows
// that do not exist keep what was there, since no sum that is used depends on them.
template <class Layout, int kRows, int kSliceWarps, bool kMayBeOdd>
__device__ __forceinline__ void load_rows(std::byte* to, const std::byte* from, int64_t row_bytes,
                                          int64_t k, int64_t in, int rows, bool pieces) {
  constexpr int kPieces = Layout::kPieces * kSliceWarps;
  constexpr int kAtOnce = kThreads / kPieces;
  constexpr int kValues = kSlice / Layout::kPieces;
  static_assert(kRows % kAtOnce == 0);
  const int piece = int(threadIdx.x) % kPieces, first = int(threadIdx.x) / kPieces;
  const int64_t column = k + piece * kValues;
  to += piece / Layout::kPieces * (kRows * Layout::kRowBytes);
  from += first * row_bytes + column * (kPieceBytes / kValues);
#pragma unroll
  for (int i = 0; i < kRows; i += kAtOnce) {
    const int row = first + i;
    if (row >= rows) break;
    std::byte* place = to + Layout::offset(row, piece % Layout::kPieces);
    if (column >= in) {
      *reinterpret_cast<uint4*>(place) = make_uint4(0, 0, 0, 0);
    } else if (!kMayBeOdd || pieces) {
      copy_piece_async(place, from + i * row_bytes);
    } else {
      const auto* values = reinterpret_cast<const float*>(from + i * row_bytes);
      *reinterpret_cast<float4*>(place) = load_quad<false>(values, 0, in - column);
    }
  }
}

template <class Format, class Tile>
__device__ __forceinline__ void add_slice(typename Tile::WarpSums& sums, const std::byte* inputs,
                                          const std::byte* weights, int first_output,
                                          int first_row) {
  const int lane = int(threadIdx.x) % kWarp, place = lane / 4, quarter = lane % 4;
  LaneValues<Format::kParts> w[Tile::kOutputTiles][2];  // outputs `place` and `place` + 8
#pragma unroll
  for (int m = 0; m < Tile::kOutputTiles; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      w[m][half] = Format::values(weights, first_output + m * kTileOut + half * 8 + place, quarter);
  constexpr int kAtOnce =
      Tile::kRowTiles < 2 ? 1 : 2;  // independent sums hide each other's latency
#pragma unroll
  for (int n = 0; n < Tile::kRowTiles; n += kAtOnce) {
    LaneValues<F32Slices::kParts> x[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      x[i] = F32Slices::values(inputs, first_row + (n + i) * kMmaRows + place, quarter);
    // Tensor cores cut off what does not fit when they add: their chains are kept short.
    Sums slice[kAtOnce][Tile::kOutputTiles];
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
      for (int x_part = F32Slices::kParts - 1; x_part >= 0; --x_part)
#pragma unroll
        for (int w_part = Format::kParts - 1; w_part >= 0; --w_part)
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
            for (int m = 0; m < Tile::kOutputTiles; ++m) {
              const uint32_t* low = w[m][0].pairs[w_part] + 2 * step;
              const uint32_t* high = w[m][1].pairs[w_part] + 2 * step;
              mma_bf16(slice[i][m], {{low[0], high[0], low[1], high[1]}},
                       x[i].pairs[x_part][2 * step], x[i].pairs[x_part][2 * step + 1]);
            }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
      for (int m = 0; m < Tile::kOutputTiles; ++m)
#pragma unroll
        for (int v = 0; v < 4; ++v) sums[m][n + i].v[v] += slice[i][m].v[v];
  }
}

// The sums of warps that had different inputs, added in order by the first of them. `shared` is
// free.
template <class Tile>
__device__ __forceinline__ void add_slice_warps(typename Tile::WarpSums& sums, int slice_warp,
                                                int tile_warp, float* shared) {
  constexpr int kValues = Tile::kOutputTiles * Tile::kRowTiles * 4;  // of a lane
  const auto place = [&](int slice, int value) -> float& {
    const int warp = (slice - 1) * (Tile::kOutputWarps * Tile::kRowWarps) + tile_warp;
    return shared[(warp * kValues + value) * kWarp + threadIdx.x % kWarp];
  };
  const auto each = [&](const auto& f) {
#pragma unroll
    for (int m = 0; m < Tile::kOutputTiles; ++m)
#pragma unroll
      for (int n = 0; n < Tile::kRowTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) f(sums[m][n].v[i], (m * Tile::kRowTiles + n) * 4 + i);
  };
  if (slice_warp > 0) each([&](float& sum, int value) { place(slice_warp, value) = sum; });
  __syncthreads();
  if (slice_warp > 0) return;
#pragma unroll
  for (int slice = 1; slice < Tile::kSliceWarps; ++slice)
    each([&](float& sum, int value) { sum += place(slice, value); });
}

// grid: blocks of rows x blocks of outputs; those that run together read the same weights.
template <class Format, class Tile>
__global__ void __launch_bounds__(kThreads)
    floats_many_rows_kernel(LinearInput input, DeviceWeight weight, float* out, bool add) {
  using Shared = Stage<Format, Tile>;
  constexpr int kStages = Shared::kStages;
  std::byte* const shared = launch_memory;
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const int tile_warp = warp % (Tile::kOutputWarps * Tile::kRowWarps);
  const int slice_warp = warp / (Tile::kOutputWarps * Tile::kRowWarps);
  const int warp_output = tile_warp % Tile::kOutputWarps * Tile::kOutputTiles * kTileOut;
  const int warp_row = tile_warp / Tile::kOutputWarps * Tile::kRowTiles * kMmaRows;
  const int64_t block_row = int64_t(blockIdx.x) * Tile::kRows;
  const int64_t block_output = int64_t(blockIdx.y) * Tile::kOutputs;
  const int rows = int(min(int64_t{Tile::kRows}, input.rows - block_row));
  const int outputs = int(min(int64_t{Tile::kOutputs}, weight.out - block_output));

  const int64_t in = input.in;
  const int64_t x_bytes = in * int64_t(sizeof(float));
  const int64_t w_bytes = (in * Format::kRowBytes / kSlice + 15) / 16 * 16;
  const auto* x = reinterpret_cast<const std::byte*>(input.x + block_row * in);
  const std::byte* w = weight.values + block_output * w_bytes;
  const auto load_inputs = [&](std::byte* stage, int64_t k) {
    load_rows<F32Slices, Tile::kRows, Tile::kSliceWarps, true>(stage, x, x_bytes, k, in, rows,
                                                               input.quads);
  };
  const auto load_weights = [&](std::byte* stage, int64_t k) {
    load_rows<Format, Tile::kOutputs, Tile::kSliceWarps, false>(stage + Shared::kWeightsAt, w,
                                                                w_bytes, k, in, outputs, true);
  };

  // Blocks begin at different inputs, lest all ask for the same few lines of rows at the same time.
  const int stages = int((in + Tile::kDepth - 1) / Tile::kDepth);
  const int first = int((blockIdx.x * 5 + blockIdx.y * 7) % unsigned(stages));
  const auto inputs_of = [&](int i) {
    return int64_t{first + i < stages ? first + i : first + i - stages} * Tile::kDepth;
  };

  // No let_next_begin(): the next kernel's blocks would take what room there is beside these, two
  // on one multiprocessor and none on another.
  for (int i = 0; i < min(kStages - 1, stages); ++i)
    load_weights(shared + i * Shared::kBytes, inputs_of(i));
  wait_for_inputs();
  for (int i = 0; i < kStages - 1; ++i) {  // the first group of copies has all weights so far
    if (i < stages) load_inputs(shared + i * Shared::kBytes, inputs_of(i));
    end_copy_group();
  }
  typename Tile::WarpSums sums;
  int use = 0, fill = kStages - 1;
  for (int i = 0; i < stages; ++i) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // everybody's copies are here, and nobody reads the stage before any more
    const int next = i + kStages - 1;
    if (next < stages) {
      load_inputs(shared + fill * Shared::kBytes, inputs_of(next));
      load_weights(shared + fill * Shared::kBytes, inputs_of(next));
    }
    end_copy_group();
    const std::byte* stage = shared + use * Shared::kBytes;
    add_slice<Format, Tile>(sums, stage + slice_warp * Shared::kInputSlice,
                            stage + Shared::kWeightsAt + slice_warp * Shared::kWeightSlice,
                            warp_output, warp_row);
    use = use + 1 == kStages ? 0 : use + 1;
    fill = fill + 1 == kStages ? 0 : fill + 1;
  }
  if constexpr (Tile::kSliceWarps > 1) {
    __syncthreads();
    add_slice_warps<Tile>(sums, slice_warp, tile_warp, reinterpret_cast<float*>(shared));
    if (slice_warp > 0) return;
  }

  out += block_row * weight.out + block_output;
#pragma unroll
  for (int m = 0; m < Tile::kOutputTiles; ++m)
#pragma unroll
    for (int n = 0; n < Tile::kRowTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int output = warp_output + m * kTileOut + i / 2 * 8 + lane / 4;
        const int row = warp_row + n * kMmaRows + lane % 4 * 2 + i % 2;
        if (output >= outputs || row >= rows) continue;
        float& result = out[row * weight.out + output];
        result = add ? result + sums[m][n].v[i] : sums[m][n].v[i];
      }
}

struct FloatsWork {
  const Launcher& launcher;
  const LinearInput& input;
  const DeviceWeight& weight;
  float* out;
  bool add;

  template <class Tile>
  dim3 grid() const {
    return dim3(unsigned((input.rows + Tile::kRows - 1) / Tile::kRows),
                unsigned((weight.out + Tile::kOutputs - 1) / Tile::kOutputs));
  }
  // Half as many blocks as multiprocessors are enough: tiles of half the size read twice as much.
  template <class Tile>
  bool occupies() const {
    return int64_t{grid<Tile>().x} * grid<Tile>().y >= launcher.multiprocessors / 2;
  }
  template <class Format, class Tile>
  void run() const {
    constexpr size_t kShared = size_t{Stage<Format, Tile>::kStages} * Stage<Format, Tile>::kBytes;
    allow_shared(floats_many_rows_kernel<Format, Tile>, kShared);
    launch(launcher, grid<Tile>(), kThreads, kShared, floats_many_rows_kernel<Format, Tile>, input,
           weight, out, add);
  }
  // The first tiling that occupies the device, or the last.
  template <class Format, class Tile, class... Smaller>
  void run_first() const {
    if constexpr (sizeof...(Smaller) > 0)
      if (!occupies<Tile>()) return run_first<Format, Smaller...>();
    run<Format, Tile>();
  }
};

using Wide = Tiling<128, 128, 2, 4>;
using Square = Tiling<64, 64, 2, 2>;
using Small = Tiling<32, 32, 1, 2>;
using Narrow = Tiling<16, 16, 1, 1>;
using Least = Tiling<16, 8, 1, 1>;

}  // namespace

void linear_floats_many_rows(const Launcher& launcher, const LinearInput& input,
                             const DeviceWeight& weight, float* out, bool add) {
  const FloatsWork work{launcher, input, weight, out, add};
  switch (weight.format) {
    case DeviceFormat::bf16:
      return work.run_first<Bf16Slices, Wide, Square, Small, Narrow, Least>();
    case DeviceFormat::f16: return work.run_first<F16Slices, Square, Small, Least>();
    case DeviceFormat::f32: return work.run_first<F32Slices, Small, Least>();
    default: unreachable("DeviceFormat");
  }
}

}  // namespace slip
