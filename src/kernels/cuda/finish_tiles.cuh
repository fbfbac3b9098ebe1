// Linear layers of few rows: what the warps of a block have of a tile is added up and written.
#pragma once

#include "kernels/cuda/few_rows.cuh"

namespace slip::gemv {

// Where a thread finds what it finishes: an output of a row of a tile, of those that wait for the
// same barrier.
struct FinishPlace {
  int slot, row, tile;  // the slot's tile may be past the last

  __device__ FinishPlace(int first, int rows) {
    const int place = int(threadIdx.x) / kTileOut;  // of tiles x rows
    slot = place / rows;
    row = place % rows;
    tile = first + slot * int(gridDim.x);  // of all teams
  }
  __device__ bool exists(const FewRows& work) const {
    return slot < kTeams * work.tiles_at_once && tile < work.slabs.units;
  }
  // What the warps have of the output, in their order.
  __device__ float sum(const FewRows& work, const float* partials) const {
    const float* part = partials + (slot * kWarps * work.rows_per_block + row) * kPartialStride +
                        int(threadIdx.x) % kTileOut;
    float total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += part[w * work.rows_per_block * kPartialStride];
    return total;
  }
};

// The output of a tile that a thread has, of all weights of a launch.
struct TileOutput {
  float before = 0, scale = 1;  // what the sum is added to, and what it is multiplied by before
  float* out = nullptr;         // null: there is none

  __device__ __forceinline__ void find(const FewRows& work, int tile, int64_t row) {
    int job = 0;
#pragma unroll 1
    while (tile >= work.slabs.list[job].end) ++job;
    const LinearJob& current = work.slabs.list[job];
    const int job_begin = job == 0 ? 0 : work.slabs.list[job - 1].end;
    const int64_t output = int64_t(tile - job_begin) * kTileOut + int(threadIdx.x) % kTileOut;
    if (output < current.weight.out) {
      out = current.out + row * current.weight.out + output;
      if (work.add) before = *out;
      if (has_output_scales(current.weight.format))
        scale = static_cast<const float*>(current.weight.scales)[output];
    }
  }
  __device__ void write(const FewRows& work, float sum) const {
    sum = __fmul_rn(sum, scale);
    *out = work.add ? __fadd_rn(before, sum) : sum;  // never fused: kernels must agree
  }
};

// Adds up what the warps have of some tiles, of which `first` is the first, and writes it.
__device__ __forceinline__ void finish_tiles(const FewRows& work, int first, int64_t first_row,
                                             int rows, const float* partials) {
  const FinishPlace place(first, rows);
  TileOutput output;  // asked for now, there after the barrier
  if (place.exists(work)) output.find(work, place.tile, first_row + place.row);
  __syncthreads();
  if (output.out) output.write(work, place.sum(work, partials));
}

}  // namespace slip::gemv
