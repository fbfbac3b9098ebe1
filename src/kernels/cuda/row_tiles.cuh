// Products of a tile of rows with two tiles of 16 outputs per warp, for steps of many rows. Weights
// and rounded activations come through stages of shared memory, one slab of inputs each.
#pragma once

#include "kernels/cuda/expert_slabs.cuh"

namespace slip {

inline constexpr int kTileRows = 64;
inline constexpr int kTileWarps = 8;
inline constexpr int kTileThreads = kTileWarps * kWarp;
inline constexpr int kMostStages = 4;

// A stage: activations, their units, then two slabs of weights per warp with their scales.
inline constexpr int kStageInputs = slab_input_bytes(kTileRows);
inline constexpr int kStageUnits = kTileRows * int(sizeof(float));
inline constexpr int kStageWeight = 2 * kUnitBytes + kTileOut * int(sizeof(float));
inline constexpr int kStageBytes = kStageInputs + kStageUnits + 2 * kTileWarps * kStageWeight;
static_assert(kStageWeight >= kUnitBytes + kSlabScaleBytes);

inline constexpr size_t tile_shared_bytes(int stages) {
  return size_t(stages) * kStageBytes + kTileRows * sizeof(int32_t);
}

// Rows of activations, each in slabs as round_slab() leaves a single row's.
struct Rounded {
  std::byte* values;  // [rows][slabs][256 bytes]
  float* units;       // [rows][slabs]
};

// Up to kTileRows pairs of one expert, in consecutive slots; expert < 0: rows of the shared one.
struct RowTile {
  int32_t expert, first, count;
};

// Pairs sorted by expert have slots. Device memory of one call.
struct ManyRows {
  int32_t* slot_rows;   // [pairs]: the row of each slot
  int32_t* slots;       // [pairs]: the slot of each pair
  RowTile* tiles;       // of routed experts
  int32_t* tile_count;  // of them
  Rounded x;
  Rounded hidden;         // [slots]
  Rounded shared_hidden;  // [rows]
  float* outputs;         // [slots, then rows][hidden]
  int32_t shared_tiles;
  int32_t stages;
};

// The rows of block blockIdx.y; none where there are fewer tiles than there might have been.
__device__ __forceinline__ RowTile find_row_tile(const ExpertsStep& step, const ManyRows& many) {
  const int index = int(blockIdx.y);
  if (index < many.shared_tiles) {
    const int first = index * kTileRows;
    return {-1, first, min(kTileRows, step.rows - first)};
  }
  if (index - many.shared_tiles >= *many.tile_count) return {0, 0, 0};
  return many.tiles[index - many.shared_tiles];
}

// Sums of a warp: 8 * kColumns rows of two tiles of outputs.
template <int kColumns>
struct TileSums {
  float v[2][kColumns][4];

  // f(row, output of the tile, sum of the first weight, sum of the second)
  template <class F>
  __device__ __forceinline__ void for_each(const F& f) const {
    const int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        f(c * kMmaRows + lane % 4 * 2 + i % 2, lane / 4 + i / 2 * 8, v[0][c][i], v[1][c][i]);
  }
};

// How slabs lie in stages: those of f16 in halves, those of int4 by twos, where rows are so few
// that activations of two slabs have room.
template <class Slab, bool kOneGroup, int kColumns>
struct Staging {
  static constexpr int kBytes = slab_bytes(Slab::kFormat);
  static constexpr int kParts = kBytes > 2 * kUnitBytes ? 2 : 1;  // stages of a slab
  static constexpr bool kTwo =
      kBytes == kUnitBytes && kOneGroup && 2 * kColumns * kMmaRows <= kTileRows;
  static constexpr int kSlabs = kTwo ? 2 : 1;         // of a stage
  static constexpr int kRows = kTileRows / kSlabs;    // that there is room for
  static constexpr int kValues = kBytes / kParts;     // bytes of a slab in a stage
  static constexpr int kScalesAt = kSlabs * kValues;  // behind the values of a weight
};

// Adds slab `slab` of those in `stage` to columns kFirst .. kFirst + kCount - 1 of the sums.
template <class Slab, bool kOneGroup, int kFirst, int kCount, int kColumns>
__device__ __forceinline__ void add_slab(const std::byte* stage, int slab, int group,
                                         TileSums<kColumns>& sums) {
  using How = Staging<Slab, kOneGroup, kColumns>;
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const std::byte* inputs = stage + slab * slab_input_bytes(How::kRows);
  const auto* units = reinterpret_cast<const float*>(stage + kStageInputs) + slab * How::kRows;
  const std::byte* weights =
      stage + kStageInputs + kStageUnits + warp * 2 * kStageWeight + slab * How::kValues;
  const std::byte* all_scales = weights + How::kScalesAt - slab * (How::kValues - kGroupScaleBytes);
  Sums part[2][kCount];
  float values[2][kCount][4];  // of the groups so far
#pragma unroll
  for (int w = 0; w < 2; ++w)
#pragma unroll
    for (int c = 0; c < kCount; ++c)
      for (float& value : values[w][c]) value = 0;
  const auto close_groups = [&](int index) {
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      const float2 scales = slab_scales<Slab>(all_scales + w * kStageWeight, index);
#pragma unroll
      for (int c = 0; c < kCount; ++c) close_group(values[w][c], part[w][c], scales);
    }
  };
  const int pairs_per_group = group / 32;
  int groups_done = 0;
#pragma unroll 2  // with all four, registers do not suffice
  for (int pair = 0; pair < kStepsPerSlab / 2 / How::kParts; ++pair) {
    WeightFragment steps[2][2];
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      uint32_t words[kPairWords<Slab>];
      load_lane_words(weights + w * kStageWeight, pair * kPairWords<Slab>, words);
      for (int step = 0; step < 2; ++step) steps[w][step] = Slab::fragment(words, step);
    }
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      const int row = (kFirst + c) * kMmaRows + lane / 4;
      const uint4 x =
          *reinterpret_cast<const uint4*>(inputs + slab_offset(pair, row, lane % 4, How::kRows));
      mma(part[0][c], steps[0][0], x.x, x.y);
      mma(part[1][c], steps[1][0], x.x, x.y);
      mma(part[0][c], steps[0][1], x.z, x.w);
      mma(part[1][c], steps[1][1], x.z, x.w);
    }
    if (!kOneGroup && ((pair + 1) & (pairs_per_group - 1)) == 0) close_groups(groups_done++);
  }
  if (kOneGroup) close_groups(0);
#pragma unroll
  for (int c = 0; c < kCount; ++c) {
    const float2 unit =
        *reinterpret_cast<const float2*>(units + (kFirst + c) * kMmaRows + lane % 4 * 2);
#pragma unroll
    for (int w = 0; w < 2; ++w)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        // Exactly a product and a sum: units are powers of two.
        float& sum = sums.v[w][kFirst + c][i];
        sum = fmaf(values[w][c][i], i % 2 == 0 ? unit.x : unit.y, sum);
      }
  }
}

// Of one warp, in a block of kTileWarps whose stages have the same activations.
struct TileProduct {
  WeightTile weights[2];  // of one format, and so of one way to lie in memory
  bool exists[2];
  Rounded inputs;
  int slabs;
  int rows;  // of the tile
  int stages;

  // Calls finish(TileSums) on all threads. `sources`, in shared memory: which row of `inputs` each
  // row of the tile is.
  template <class Finish>
  __device__ __forceinline__ void run(std::byte* memory, const int32_t* sources,
                                      const Finish& finish) const {
    // Half-empty tiles are common when there are many experts.
    if (rows > 4 * kMmaRows)
      run_columns<8>(memory, sources, finish);
    else if (rows > 2 * kMmaRows)
      run_columns<4>(memory, sources, finish);
    else
      run_columns<2>(memory, sources, finish);
  }

 private:
  template <int kColumns, class Finish>
  __device__ __forceinline__ void run_columns(std::byte* memory, const int32_t* sources,
                                              const Finish& finish) const {
    TileSums<kColumns> sums{};
    switch (weights[0].format) {
      case DeviceFormat::int4_group:
        if (weights[0].group == kSlabIn)
          add_slabs<Int4Slab, true>(memory, sources, sums);
        else
          add_slabs<Int4Slab, false>(memory, sources, sums);
        break;
      case DeviceFormat::f16_slabs: add_slabs<F16Slab, true>(memory, sources, sums); break;
      case DeviceFormat::int8_row: add_slabs<Int8Slab, true>(memory, sources, sums); break;
      default: add_slabs<Fp8Slab, true>(memory, sources, sums); break;
    }
    finish(sums);
  }

  template <class Slab, bool kOneGroup, int kColumns>
  __device__ __forceinline__ void add_slabs(std::byte* memory, const int32_t* sources,
                                            TileSums<kColumns>& sums) const {
    using How = Staging<Slab, kOneGroup, kColumns>;
    const int steps = (slabs * How::kParts + How::kSlabs - 1) / How::kSlabs;
    for (int step = 0; step < stages - 1; ++step) {
      if (step < steps) request<How>(step, memory + step * kStageBytes, sources);
      end_copy_group();
    }
    int used = 0, filled = stages - 1;  // stages
    for (int step = 0; step < steps; ++step) {
      if (stages == kMostStages)
        wait_for_copies<kMostStages - 2>();
      else
        wait_for_copies<0>();
      __syncthreads();
      if (step + stages - 1 < steps)
        request<How>(step + stages - 1, memory + filled * kStageBytes, sources);
      end_copy_group();
      if (exists[0]) {
        const std::byte* stage = memory + used * kStageBytes;
        // With groups there are more numbers to keep: half the columns at a time.
        constexpr int kAtOnce = kOneGroup || kColumns < 8 ? kColumns : kColumns / 2;
        add_slab<Slab, kOneGroup, 0, kAtOnce>(stage, 0, weights[0].group, sums);
        if constexpr (kAtOnce < kColumns)
          add_slab<Slab, kOneGroup, kAtOnce, kAtOnce>(stage, 0, weights[0].group, sums);
        if constexpr (How::kTwo)
          if (step * 2 + 1 < slabs)
            add_slab<Slab, kOneGroup, 0, kAtOnce>(stage, 1, weights[0].group, sums);
      }
      used = used + 1 == stages ? 0 : used + 1;
      filled = filled + 1 == stages ? 0 : filled + 1;
    }
  }

  // What a stage has. Rows and tiles that do not exist keep what was there: no sum that is used
  // depends on them.
  template <class How>
  __device__ __forceinline__ void request(int step, std::byte* stage,
                                          const int32_t* sources) const {
    const int thread = int(threadIdx.x), lane = thread % kWarp;
    const int slab = step * How::kSlabs / How::kParts, part = step % How::kParts;
    const int count = min(How::kSlabs, slabs - slab);
    constexpr int kOfSlab = kSlabIn * 2 / 16 / How::kParts;  // pieces of a row
    constexpr int kPieces = kOfSlab * How::kSlabs;
#pragma unroll 1
    for (int i = thread; i < rows * kPieces; i += kTileThreads) {
      const int row = i / kPieces, piece = i % kPieces, of_slab = piece % kOfSlab;
      if (piece >= count * kOfSlab) continue;
      const int64_t place = int64_t(sources[row]) * slabs + slab;
      copy_16_async(stage + piece / kOfSlab * slab_input_bytes(How::kRows) +
                        slab_offset(of_slab / 4, row, of_slab % 4, How::kRows),
                    inputs.values + place * kSlabIn * 2 + (part * kOfSlab + piece) * 16);
    }
    const int row = thread % How::kRows, of_stage = thread / How::kRows;
    if (row < rows && of_stage < count)
      copy_4_async(stage + kStageInputs + thread * 4,
                   inputs.units + int64_t(sources[row]) * slabs + slab + of_stage);
    std::byte* slot = stage + kStageInputs + kStageUnits + thread / kWarp * 2 * kStageWeight;
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      if (!exists[w]) continue;
      const std::byte* values =
          weights[w].values + (int64_t(slab) * How::kParts + part) * How::kValues;
#pragma unroll 1
      for (int at = lane * 16; at < count * How::kValues; at += kPieceBytes)
        copy_16_async(slot + w * kStageWeight + at, values + at);
      if (lane < weights[0].scale_words * count)
        copy_4_async(slot + w * kStageWeight + How::kScalesAt + lane * 4,
                     weights[w].scales + (int64_t(slab) * weights[0].scale_stride + lane) * 4);
    }
  }
};

}  // namespace slip
