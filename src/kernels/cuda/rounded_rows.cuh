// The rows of a step as few_rows_kernel() keeps them: normed where that is asked for, then rounded,
// once per block, into shared memory. Little code: what a step runs through but once is waited for
// like any other memory.
#pragma once

#include "kernels/cuda/few_rows.cuh"
#include "kernels/cuda/int4_products.cuh"
#include "kernels/cuda/normed_row.cuh"

namespace slip::gemv {

static_assert(kNormSlab == kSlabIn);

inline constexpr int kRoundWarps = kTeams * kWarps;
inline constexpr int kRoundAtOnce = 2;  // slabs that a warp rounds side by side

// Slab after slab, each with all rows: in shared memory, or in global memory on the way there.
struct RoundedRows {
  std::byte* inputs;
  std::byte* units;  // a float each; an IntegerSlab for int4
  int rows;

  __device__ float* unit(int slab) const { return reinterpret_cast<float*>(units) + slab * rows; }
  __device__ IntegerSlab* integers(int slab) const {
    return reinterpret_cast<IntegerSlab*>(units) + slab * rows;
  }

  // A warp's slab of one row.
  template <bool kInt4>
  __device__ __forceinline__ void round(float4 x, int row, int slab) const {
    std::byte* place = inputs + slab * slab_input_bytes(rows);
    const bool first = threadIdx.x % kWarp == 0;
    if constexpr (kInt4) {
      const IntegerSlab rounded = round_to_integers(x, row, rows, place);
      if (first) integers(slab)[row] = rounded;
    } else {
      const float its_unit = round_slab(x, row, rows, place);
      if (first) unit(slab)[row] = its_unit;
    }
  }
};

// `rows` rows of `slabs` slabs in one piece of memory: a multiple of eight bytes.
__host__ __device__ inline int rounded_bytes(int rows, int slabs,
                                             RowForm form = RowForm::integers) {
  const int unit_bytes = int(form == RowForm::integers ? sizeof(IntegerSlab) : sizeof(float));
  return (slabs * (slab_input_bytes(rows) + rows * unit_bytes) + 7) / 8 * 8;
}
__device__ __forceinline__ RoundedRows rounded_rows(std::byte* memory, int rows, int slabs) {
  return {memory, memory + slabs * slab_input_bytes(rows), rows};
}

// Whether a kernel leaves its rows rounded, too. It is compiled for each: code for another form
// would be waited for like any other memory.
enum class Rounds : uint8_t { no, to_integers, to_halves };
constexpr RowForm form_of(Rounds rounds) {
  return rounds == Rounds::to_halves ? RowForm::halves : RowForm::integers;
}
inline Rounds rounds_to(const RoundedTo& to) {
  return !to.memory                     ? Rounds::no
         : to.form == RowForm::integers ? Rounds::to_integers
                                        : Rounds::to_halves;
}

// One warp leaves its slab of one of `rows` rows where weights will read them.
template <RowForm kForm>
__device__ __forceinline__ void round_to(std::byte* memory, float4 x, int row, int rows, int slab,
                                         int slabs) {
  rounded_rows(memory, rows, slabs).round<kForm == RowForm::integers>(x, row, slab);
}

// Rows that come rounded, or what a block has of them: a multiple of eight bytes.
__device__ __forceinline__ void copy_rounded(const std::byte* from, int bytes, std::byte* to) {
  constexpr int kAtOnce = 3;
  const auto* pieces = reinterpret_cast<const uint4*>(from);
  auto* place = reinterpret_cast<uint4*>(to);
  const int count = bytes / int(sizeof(uint4));
#pragma unroll 1
  for (int begin = int(threadIdx.x); begin < count; begin += kAtOnce * kThreads) {
    uint4 loaded[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (begin + i * kThreads < count) loaded[i] = __ldcg(pieces + begin + i * kThreads);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (begin + i * kThreads < count) place[begin + i * kThreads] = loaded[i];
  }
  if (bytes % int(sizeof(uint4)) != 0 && threadIdx.x == 0)
    *reinterpret_cast<uint2*>(place + count) =
        __ldcg(reinterpret_cast<const uint2*>(pieces + count));
}

// The slabs of all rows of a block, of which its warps take some at a time.
struct SlabItems {
  const LinearInput& input;
  int64_t first_row;
  int rows, slabs;
  int first_slab = 0;  // of the rows

  struct Item {
    int row, slab;  // counted from first_slab
  };
  __device__ int count() const { return rows * slabs; }
  // Past the end: the last once more, to the same place.
  __device__ Item at(int index) const {
    index = min(index, count() - 1);
    int row = 0;  // few rows: cheaper than a division
    while (index >= (row + 1) * slabs) ++row;
    return {row, index - row * slabs};
  }
  __device__ int64_t column(const Item& item) const {
    return int64_t(first_slab + item.slab) * kSlabIn + int(threadIdx.x) % kWarp * kQuad;
  }
  __device__ float4 load(const Item& item) const {
    const float* from = input.x + (first_row + item.row) * input.in;
    return input.quads ? load_quad<true>(from, column(item), input.in)
                       : load_quad<false>(from, column(item), input.in);
  }
};

// What a warp rounds at a time.
struct SlabBatch {
  float4 x[kRoundAtOnce];

  __device__ __forceinline__ SlabBatch(const SlabItems& items, int begin) {
#pragma unroll
    for (int i = 0; i < kRoundAtOnce; ++i) x[i] = items.load(items.at(begin + i * kRoundWarps));
  }
};

__device__ __forceinline__ int first_item() { return int(threadIdx.x) / kWarp; }
inline constexpr int kBatchItems = kRoundAtOnce * kRoundWarps;  // of a block

// Calls use(i, item) for each of a batch that exists.
template <class Use>
__device__ __forceinline__ void for_batch(const SlabItems& items, int begin, const Use& use) {
#pragma unroll
  for (int i = 0; i < kRoundAtOnce; ++i)
    if (begin + i * kRoundWarps < items.count()) use(i, items.at(begin + i * kRoundWarps));
}

// Rows as they are. Each batch is on its way while the one before it is rounded. Calls asked() when
// the first one is.
template <bool kInt4, class Asked>
__device__ __forceinline__ void round_plain(const SlabItems& items, const RoundedRows& to,
                                            const Asked& asked) {
  wait_for_inputs();
  SlabBatch next(items, first_item());
  asked();
#pragma unroll 1
  for (int begin = first_item(); begin < items.count(); begin += kBatchItems) {
    const SlabBatch batch = next;
    if (begin + kBatchItems < items.count()) next = {items, begin + kBatchItems};
    for_batch(items, begin, [&](int i, const SlabItems::Item& item) {
      to.round<kInt4>(batch.x[i], item.row, item.slab);
    });
  }
}

// What a warp has of a row that was normed.
template <bool kInt4, int kWarps, int kAtOnce>
__device__ __forceinline__ void round_normed(const NormedRow<kWarps, kAtOnce>& normed, int row,
                                             int slabs, const RoundedRows& to) {
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i)
    if (normed.slab(i) < slabs) to.round<kInt4>(normed.x[i], row, normed.slab(i));
}

}  // namespace slip::gemv
