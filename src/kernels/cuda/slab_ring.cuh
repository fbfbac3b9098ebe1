// A warp's share of a step of few rows: slabs come in through a ring in shared memory, meet the rows
// that use their expert, and leave a value per row and output.
#pragma once

#include "kernels/cuda/expert_slabs.cuh"

namespace slip {

inline constexpr int kRingUnits = 4;
inline constexpr int kSlotBytes = kUnitBytes + kSlabScaleBytes;
inline constexpr int kRingBytes = kRingUnits * kSlotBytes;

// What one warp has to itself: its ring, its slab of activations, their units, who uses the expert.
inline constexpr int warp_bytes(int rows) {
  return kRingBytes + slab_input_bytes(rows) + kFewRows * int(sizeof(float) + sizeof(int32_t));
}

// The ring is always full: every unit that is used makes place for a request, if only for nothing.
// A Cursor walks over slabs: tile, slab, done(), advance().
template <class Cursor>
class SlabRing {
 public:
  // Asks for the first units of the slabs from `first` on.
  __device__ SlabRing(std::byte* slots, const WeightTile* tiles, Cursor first)
      : slots_(slots), tiles_(tiles), next_(first) {
    for (int i = 0; i < kRingUnits; ++i) {
      request();
      turn();
    }
  }

  // The oldest unit, complete, for the whole warp: values, and, with the first of a slab, scales.
  __device__ const std::byte* oldest() const {
    wait_for_copies<kRingUnits - 1>();
    __syncwarp();
    return slots_ + slot_ * kSlotBytes;
  }

  __device__ void release() {
    __syncwarp();
    request();
    turn();
  }

 private:
  __device__ void turn() { slot_ = slot_ + 1 == kRingUnits ? 0 : slot_ + 1; }

  __device__ void request() {
    while (!next_.done() && tiles_[next_.tile].units == 0) next_.advance();  // floats go another way
    if (!next_.done()) {
      const WeightTile& tile = tiles_[next_.tile];
      const int lane = int(threadIdx.x) % kWarp;
      std::byte* slot = slots_ + slot_ * kSlotBytes;
      const std::byte* values =
          tile.values + (int64_t(next_.slab) * tile.units + unit_) * kUnitBytes + lane * 16;
      copy_16_async(slot + lane * 16, values);
      copy_16_async(slot + kPieceBytes + lane * 16, values + kPieceBytes);
      if (unit_ == 0 && lane < tile.scale_words)
        copy_4_async(slot + kUnitBytes + lane * 4,
                     tile.scales + (int64_t(next_.slab) * tile.scale_stride + lane) * 4);
      if (++unit_ == tile.units) {
        unit_ = 0;
        next_.advance();
      }
    }
    end_copy_group();
  }

  std::byte* slots_;
  const WeightTile* tiles_;
  Cursor next_;
  int unit_ = 0;  // of the slab at next_
  int slot_ = 0;
};

// The rows that meet a slab, each rounded, in the warp's own memory.
struct SlabInputs {
  std::byte* rounded;    // [4 pairs][count rows][4 quarters] of 16 bytes
  float* units;          // [count]
  const int32_t* users;  // [count]: row of `rows`
  int count;
  const float* rows;
  int in;
  bool in_quads;

  __device__ const float* row(int i) const { return rows + int64_t(users[i]) * in; }

  __device__ void round(int slab) const {
    __syncwarp();  // the last slab may still be read
    for (int i = 0; i < count; ++i) {
      const float unit = round_slab(lane_inputs(row(i), slab, in, in_quads), i, count, rounded);
      if (threadIdx.x % kWarp == 0) units[i] = unit;
    }
    __syncwarp();
  }
};

// Values of one slab, in units of its activations: lane and place as in Sums, eight rows each.
template <WeightFormat kFormat, int kColumns, class Cursor>
__device__ __forceinline__ void slab_values(SlabRing<Cursor>& ring, int group,
                                            const SlabInputs& inputs,
                                            float (&values)[kColumns][4]) {
  constexpr bool kInt4 = kFormat == WeightFormat::int4_group;
  constexpr int kUnits = kInt4 ? 1 : 2;
  constexpr int kPairs = kStepsPerSlab / 2 / kUnits;
  const int pairs_per_group = kInt4 ? group / 32 : kStepsPerSlab / 2;
  const int lane = int(threadIdx.x) % kWarp;
  const std::byte* row_inputs[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {  // columns without a row take the last one's: nobody looks
    const int row = min(c * kMmaRows + lane / 4, inputs.count - 1);
    row_inputs[c] = inputs.rounded + slab_offset(0, row, lane % 4, inputs.count);
    for (float& value : values[c]) value = 0;
  }
  Sums sums[kColumns];
  float scales[2];
  int groups_done = 0;
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    const std::byte* slot = ring.oldest();
    if (!kInt4 && unit == 0)
      for (int i = 0; i < 2; ++i)
        scales[i] = slab_scale<kFormat>(slot + kUnitBytes, 0, lane / 4 + 8 * i);
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const int pair = unit * kPairs + p;
      WeightFragment steps[2];
      unpack_pair<kFormat>(slot + lane * 16, p, steps);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const uint4 x = *reinterpret_cast<const uint4*>(row_inputs[c] +
                                                        slab_offset(pair, 0, 0, inputs.count));
        mma(sums[c], steps[0], x.x, x.y);
        mma(sums[c], steps[1], x.z, x.w);
      }
      if (((pair + 1) & (pairs_per_group - 1)) != 0) continue;
      if (kInt4)
        for (int i = 0; i < 2; ++i)
          scales[i] = slab_scale<kFormat>(slot + kUnitBytes, groups_done, lane / 4 + 8 * i);
      ++groups_done;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        for (int i = 0; i < 4; ++i)
          values[c][i] = fmaf(sums[c].v[i], scales[i / 2], values[c][i]);
        sums[c] = Sums{};
      }
    }
    ring.release();
  }
}

// The value of output o for row i goes to values_of(i)[o].
template <int kColumns, class Cursor, class ValuesOf>
__device__ __forceinline__ void take_slab(SlabRing<Cursor>& ring, const WeightTile& tile,
                                          const SlabInputs& inputs, const ValuesOf& values_of) {
  float values[kColumns][4];
  switch (tile.format) {
    case WeightFormat::int4_group:
      slab_values<WeightFormat::int4_group>(ring, tile.group, inputs, values);
      break;
    case WeightFormat::int8_row:
      slab_values<WeightFormat::int8_row>(ring, tile.group, inputs, values);
      break;
    default: slab_values<WeightFormat::fp8_block>(ring, tile.group, inputs, values); break;
  }
  const int lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = c * kMmaRows + lane % 4 * 2 + i % 2;
      if (row < inputs.count)
        values_of(row)[lane / 4 + i / 2 * 8] = values[c][i] * inputs.units[row];
    }
}

// The same of floats, without rounding; `outputs` of the tile's 16 exist.
template <class ValuesOf>
__device__ __forceinline__ void take_float_slab(const WeightTile& tile, int slab, int outputs,
                                                const SlabInputs& inputs,
                                                const ValuesOf& values_of) {
  constexpr int kAtOnce = 4;
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
        if (threadIdx.x % kWarp == 0) values_of(i)[first + o] = sum;
      }
    }
  }
}

}  // namespace slip
