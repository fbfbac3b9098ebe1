// A warp's share of a step of few rows: slabs come in through a ring in shared memory, meet the
// rows that use their expert, and leave a value per row and output.
#pragma once

#include "kernels/cuda/expert_slabs.cuh"
#include "kernels/cuda/int4_products.cuh"

namespace slip {

inline constexpr int kUnitPlace = kUnitBytes + kSlabScaleBytes;
inline constexpr int kBatchSlabs = 4;  // slabs whose activations are asked for and rounded together

// What one warp has to itself: its ring, a batch of activations, their units, who uses the expert.
inline constexpr int warp_bytes(int ring_units, int rows) {
  return ring_units * kUnitPlace + kBatchSlabs * slab_input_bytes(rows) +
         kBatchSlabs * rows * int(sizeof(IntegerSlab)) + int(kFewRows) * 4;
}

struct WarpMemory {
  std::byte* ring;
  std::byte* rounded;  // [kBatchSlabs] slabs
  IntegerSlab* units;  // [kBatchSlabs][rows]; for all formats but int4 their first members
  int32_t* users;      // [rows]

  __device__ WarpMemory(std::byte* block, int ring_units, int rows) {
    ring = block + int(threadIdx.x) / kWarp * warp_bytes(ring_units, rows);
    rounded = ring + ring_units * kUnitPlace;
    units = reinterpret_cast<IntegerSlab*>(rounded + kBatchSlabs * slab_input_bytes(rows));
    users = reinterpret_cast<int32_t*>(units + kBatchSlabs * rows);
  }
};

// Slabs first, first + step, ... before `end`, of tiles that lie in memory alike.
struct SlabRun {
  const WeightTile* tiles;
  int first, end, step;
};

// Where there is one run only.
struct OneRun {
  SlabRun run;
  __device__ bool next(SlabRun& result) {
    result = run;
    run.first = run.end;
    return result.first < result.end;
  }
};

// Brings slabs of kTiles tiles at a time, those of one run after those of another; `Runs` has
// next(SlabRun&), false at the end. The ring is always full: what is used makes place for a
// request, if only for nothing. Runs of floats go another way.
template <int kTiles, int kSlots, class Runs>
class SlabRing {
 public:
  __device__ SlabRing(std::byte* slots, const Runs& runs) : slots_(slots), runs_(runs) {
#pragma unroll 1
    for (int i = 0; i < kSlots; ++i) {
      request();
      turn();
    }
  }

  // A unit of each tile, complete, for the whole warp: values, and, with the first of a slab,
  // scales.
  __device__ const std::byte* oldest() const {
    wait_for_copies<kSlots - 1>();
    __syncwarp();
    return slots_ + slot_at_;
  }

  __device__ void release() {
    __syncwarp();
    request();
    turn();
  }

 private:
  static constexpr int kSlotBytes = kTiles * kUnitPlace;

  __device__ void turn() {
    slot_at_ = slot_at_ + kSlotBytes == kSlots * kSlotBytes ? 0 : slot_at_ + kSlotBytes;
  }

  // False at the end.
  __device__ bool begin_run() {
    SlabRun run;
    if (!runs_.next(run)) return false;
    const WeightTile* tiles = run.tiles;
    const int lane = int(threadIdx.x) % kWarp, units = tiles->units;
    slabs_left_ = units == 0 ? 0 : (run.end - run.first + run.step - 1) / run.step;
    two_units_ = units == 2;
    second_ = false;
    slab_stride_ = run.step * units * kUnitBytes;
    has_scale_ = lane < tiles->scale_words;
    scale_stride_ = run.step * tiles->scale_stride * 4;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      values_[t] = tiles[t].values + run.first * units * kUnitBytes + lane * 16;
      scales_[t] = tiles[t].scales + (run.first * tiles->scale_stride + lane) * 4;
    }
    return true;
  }

  __device__ void request() {
    while (slabs_left_ == 0 && begin_run()) {  // runs of floats take no slots
    }
    if (slabs_left_ > 0) {
      const int lane = int(threadIdx.x) % kWarp;
      const int advance = !two_units_ ? slab_stride_
                          : second_   ? slab_stride_ - kUnitBytes
                                      : kUnitBytes;
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        std::byte* place = slots_ + slot_at_ + t * kUnitPlace;
        copy_16_async(place + lane * 16, values_[t]);
        copy_16_async(place + kPieceBytes + lane * 16, values_[t] + kPieceBytes);
        if (has_scale_ && !second_) {
          copy_4_async(place + kUnitBytes + lane * 4, scales_[t]);
          scales_[t] += scale_stride_;
        }
        values_[t] += advance;
      }
      second_ = two_units_ && !second_;
      if (!second_) --slabs_left_;
    }
    end_copy_group();
  }

  std::byte* slots_;
  int slot_at_ = 0;  // the oldest
  Runs runs_;
  // Of the run, from the unit to ask for next; addresses are the lane's.
  int slabs_left_ = 0;
  bool two_units_ = false, second_ = false;  // of a slab
  bool has_scale_ = false;
  int slab_stride_ = 0, scale_stride_ = 0;
  const std::byte* values_[kTiles];
  const std::byte* scales_[kTiles];
};

// Whether a weight meets activations that are integers.
__device__ __forceinline__ bool takes_integers(const WeightTile& tile) {
  return tile.format == WeightFormat::int4_group && tile.group == kSlabIn;
}

// The rows that meet a batch of slabs, each rounded, in the warp's own memory.
struct SlabInputs {
  std::byte* rounded;    // slabs as round_slab() or round_to_integers() leaves them
  IntegerSlab* units;    // [slabs][count]
  const int32_t* users;  // [count]: row of `rows`
  int count;
  const float* rows;
  int in;
  bool in_quads;

  __device__ const float* row(int i) const { return rows + int64_t(users[i]) * in; }

  // Slabs first, first + step, ...: `slabs` of them.
  template <bool kIntegers>
  __device__ void round(int first, int step, int slabs) const {
    __syncwarp();  // the last batch may still be read
    for (int i = 0; i < count; ++i) {
      const float* from = row(i);
      float4 x[kBatchSlabs];
#pragma unroll
      for (int s = 0; s < kBatchSlabs; ++s)
        x[s] = lane_inputs(from, first + min(s, slabs - 1) * step, in, in_quads);
#pragma unroll
      for (int s = 0; s < kBatchSlabs; ++s) {
        if (s >= slabs) break;
        std::byte* place = rounded + s * slab_input_bytes(count);
        const IntegerSlab unit = kIntegers ? round_to_integers(x[s], i, count, place)
                                           : IntegerSlab{round_slab(x[s], i, count, place), 0};
        if (threadIdx.x % kWarp == 0) units[s * count + i] = unit;
      }
    }
    __syncwarp();
  }
};

// Calls store(tile, values) with the values of one slab, in units of its activations: lane and
// place as in Sums, eight rows in each of kColumns. inputs[c]: the lane's, of step 0.
template <class Slab, int kPairsPerGroup, int kColumns, int kTiles, int kSlots, class Runs,
          class Store>
__device__ __forceinline__ void slab_values(SlabRing<kTiles, kSlots, Runs>& ring,
                                            const std::byte* const (&inputs)[kColumns],
                                            int pair_bytes, const Store& store) {
  constexpr bool kInt4 = Slab::kFormat == WeightFormat::int4_group;
  constexpr int kUnits = kInt4 ? 1 : 2;
  constexpr int kPairs = kStepsPerSlab / 2 / kUnits;
  constexpr int kUnitWords = Slab::kWords / kUnits;
  Sums sums[kTiles][kColumns];
  float values[kTiles][kColumns][4] = {};
  float2 scales[kTiles];
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    const std::byte* slot = ring.oldest();
    uint32_t words[kTiles][kUnitWords];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      load_lane_words(slot + t * kUnitPlace, 0, words[t]);
      // Those of bytes do not lie with the second unit.
      if (!kInt4 && unit == 0) scales[t] = slab_scales<Slab>(slot + t * kUnitPlace + kUnitBytes, 0);
    }
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const int pair = unit * kPairs + p;
      uint4 x[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        x[c] = *reinterpret_cast<const uint4*>(inputs[c] + pair * pair_bytes);
#pragma unroll
      for (int odd = 0; odd < 2; ++odd)
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          const WeightFragment w = Slab::fragment(words[t], 2 * p + odd);
#pragma unroll
          for (int c = 0; c < kColumns; ++c)
            mma(sums[t][c], w, odd ? x[c].z : x[c].x, odd ? x[c].w : x[c].y);
        }
      if ((pair + 1) % kPairsPerGroup != 0) continue;
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        if (kInt4)
          scales[t] = slab_scales<Slab>(slot + t * kUnitPlace + kUnitBytes, pair / kPairsPerGroup);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) close_group(values[t][c], sums[t][c], scales[t]);
      }
    }
    ring.release();
  }
#pragma unroll
  for (int t = 0; t < kTiles; ++t) store(t, values[t]);
}

// Slab `index` of a batch. The value of output o of tile t for row i goes to values_of(i, t)[o].
template <int kColumns, int kTiles, int kSlots, class Runs, class ValuesOf>
__device__ __forceinline__ void take_slab(SlabRing<kTiles, kSlots, Runs>& ring,
                                          const WeightTile& tile, const SlabInputs& inputs,
                                          int index, const ValuesOf& values_of) {
  const int lane = int(threadIdx.x) % kWarp, count = inputs.count;
  const std::byte* lane_inputs[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {  // columns without a row take the last one's: nobody looks
    const int row = min(c * kMmaRows + lane / 4, count - 1);
    lane_inputs[c] =
        inputs.rounded + index * slab_input_bytes(count) + slab_offset(0, row, lane % 4, count);
  }
  const int pair_bytes = slab_offset(1, 0, 0, count);
  const auto store = [&](int t, const float(&values)[kColumns][4]) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int next = 0; next < 2; ++next) {
        const int row = c * kMmaRows + lane % 4 * 2 + next;
        if (row >= count) continue;
        const float unit = inputs.units[index * count + row].unit;
        float* place = values_of(row, t) + lane / 4;
        place[0] = values[c][next] * unit;
        place[8] = values[c][2 + next] * unit;
      }
  };
  switch (tile.format) {
    case WeightFormat::int4_group:
      if (tile.group == 64)
        return slab_values<Int4Slab, 2, kColumns>(ring, lane_inputs, pair_bytes, store);
      return slab_values<Int4Slab, 1, kColumns>(ring, lane_inputs, pair_bytes, store);
    case WeightFormat::int8_row:
      return slab_values<Int8Slab, 4, kColumns>(ring, lane_inputs, pair_bytes, store);
    default: return slab_values<Fp8Slab, 4, kColumns>(ring, lane_inputs, pair_bytes, store);
  }
}

// The same of int4 in groups of 128, with integers; four rows at a time.
template <int kTiles, int kSlots, class Runs, class ValuesOf>
__device__ __forceinline__ void take_int4_slab(SlabRing<kTiles, kSlots, Runs>& ring,
                                               const SlabInputs& inputs, int index,
                                               const ValuesOf& values_of) {
  const int lane = int(threadIdx.x) % kWarp, count = inputs.count;
  const std::byte* slot = ring.oldest();
  const std::byte* rounded = inputs.rounded + index * slab_input_bytes(count);
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    uint32_t words[Int4Slab::kWords];
    load_lane_words(slot + t * kUnitPlace, 0, words);
    const float2 scales = int4_scales(slot + t * kUnitPlace + kUnitBytes);
#pragma unroll 1
    for (int first = 0; first < count; first += kIntegerRows) {
      const int column = min(2 * first + lane / 4, 2 * count - 1);
      const std::byte* lane_inputs = rounded + integer_offset(0, column, lane % 4, count);
      uint4 x[2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        x[half] = *reinterpret_cast<const uint4*>(lane_inputs + integer_offset(half, 0, 0, count));
      const int row = min(first + lane % 4, count - 1);
      const float2 values = int4_slab_values(words, x, scales, inputs.units[index * count + row]);
      if (first + lane % 4 >= count) continue;
      float* place = values_of(row, t) + lane / 4;
      place[0] = values.x;
      place[8] = values.y;
    }
  }
  ring.release();
}

// The same of floats, one tile, without rounding; `outputs` of its 16 exist.
template <class ValuesOf>
__device__ __forceinline__ void take_float_slab(const WeightTile& tile, int slab, int outputs,
                                                const SlabInputs& inputs,
                                                const ValuesOf& values_of) {
  constexpr int kAtOnce = 4;
#pragma unroll 1
  for (int first = 0; first < outputs; first += kAtOnce) {
    float4 w[kAtOnce];
#pragma unroll
    for (int o = 0; o < kAtOnce; ++o)
      w[o] = lane_floats(tile, min(first + o, outputs - 1), slab, inputs.in);
    for (int i = 0; i < inputs.count; ++i) {
      const float4 x = lane_inputs(inputs.row(i), slab, inputs.in, inputs.in_quads);
#pragma unroll
      for (int o = 0; o < kAtOnce; ++o) {
        const float sum =
            warp_sum(fmaf(w[o].w, x.w, fmaf(w[o].z, x.z, fmaf(w[o].y, x.y, w[o].x * x.x))));
        if (threadIdx.x % kWarp == 0) values_of(i, 0)[first + o] = sum;
      }
    }
  }
}

// Slabs of a run, batch by batch: take(i, values) for slab i of a batch, where the value of row r
// and tile t goes to values(r, t).
template <bool kIntegers, class ValuesOf, class Take>
__device__ __forceinline__ void take_batches(const SlabRun& run, const SlabInputs& inputs,
                                             const ValuesOf& values_of, const Take& take) {
#pragma unroll 1
  for (int first = run.first; first < run.end; first += kBatchSlabs * run.step) {
    const int slabs = min(kBatchSlabs, (run.end - first + run.step - 1) / run.step);
    inputs.round<kIntegers>(first, run.step, slabs);
#pragma unroll 1
    for (int i = 0; i < slabs; ++i)
      take(i, [&](int row, int t) { return values_of(row, t, first + i * run.step); });
  }
}

// The values of slab s and tile t go to values_of(row, t, s).
template <int kColumns, int kTiles, int kSlots, class Runs, class ValuesOf>
__device__ __forceinline__ void take_run(SlabRing<kTiles, kSlots, Runs>& ring, const SlabRun& run,
                                         const SlabInputs& inputs, const ValuesOf& values_of) {
  if (takes_integers(*run.tiles)) {
    take_batches<true>(run, inputs, values_of,
                       [&](int i, const auto& values) { take_int4_slab(ring, inputs, i, values); });
  } else {
    take_batches<false>(run, inputs, values_of, [&](int i, const auto& values) {
      take_slab<kColumns>(ring, *run.tiles, inputs, i, values);
    });
  }
}

template <class ValuesOf>
__device__ __forceinline__ void take_float_run(const SlabRun& run, int outputs,
                                               const SlabInputs& inputs,
                                               const ValuesOf& values_of) {
  for (int slab = run.first; slab < run.end; slab += run.step)
    take_float_slab(*run.tiles, slab, outputs, inputs,
                    [&](int row, int t) { return values_of(row, t, slab); });
}

// values[0], values[kTileOut], ...: added in this order.
__device__ __forceinline__ float sum_of_slabs(const float* values, int slabs) {
  float sum = 0;
#pragma unroll 8
  for (int slab = 0; slab < slabs; ++slab) sum += values[slab * kTileOut];
  return sum;
}

}  // namespace slip
