// What the kernels of linear layers share: one input and several weights.
//
// Steps of few rows stream weights past activations that stay in shared memory (int4 in groups of
// 128 gemv_int4.cu, other slabs gemv.cu, wide ones gemv_parts.cu); the sums of a row are taken in
// an order that depends on the weight's shape alone. Longer steps are prefill: tiles of outputs x
// rows (gemm.cu, linear_floats.cu).
#pragma once

#include <optional>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/weight_tiles.h"

namespace slip {

inline constexpr int64_t kFewLinearRows = 16;
inline constexpr int kMaxLinears = 8;
inline constexpr int kMostNormedSlabs = 64;  // of a row
inline constexpr int kFloatOutputs = 2;      // of a weight of floats that a block takes at a time

// Of steps of few rows: the inputs of a weight in slabs, if there are more than kMostSlabsInOne of
// them, are cut into parts of at most kPartSlabs. Blocks can then have one part each, all rows of
// which lie in a multiprocessor's shared memory beside a ring of weights. How many parts there are
// depends on the weight's shape alone, as the order of sums does.
inline constexpr int kMostSlabsInOne = 64, kPartSlabs = 24;
static_assert(kMostSlabsInOne >= kMostNormedSlabs);  // parts are not normed
inline int linear_parts(int64_t in) {
  const int64_t slabs = slab_count(in);
  return slabs <= kMostSlabsInOne ? 1 : int((slabs + kPartSlabs - 1) / kPartSlabs);
}

// What the blocks of several parts leave for the one that adds it up.
struct PartSums {
  float* sums = nullptr;         // [parts, rows, tiles, kTileOut]
  uint32_t* counters = nullptr;  // one per block of a part; all zero between launches
};

// How weights in slabs take rounded rows: int4 in groups of 128 as integers, others as f16.
enum class RowForm : uint8_t { integers, halves };
// Where rows go as they take them (gemv::rounded_rows()).
struct RoundedTo {
  std::byte* memory = nullptr;  // null: nowhere
  RowForm form = RowForm::integers;
};

struct LinearInput {
  const float* x;  // [rows, in]
  int64_t rows, in;
  bool quads;  // rows can be read in fours (quads.cuh)
  // Rows as the weights take them, from whoever had their values at hand; x is then for weights of
  // floats alone.
  const std::byte* rounded = nullptr;
  PartSums parts{};  // of wide inputs
};

// Rows can be normed on their way in, to the bit as by rms_norm().
struct LinearNorm {
  const float* scale = nullptr;  // [in]; null: 1
  float* out = nullptr;  // [rows, in]: what is normed goes here, too; null: rows as they are
  float eps = 0;

  __host__ __device__ explicit operator bool() const { return out != nullptr; }
};

struct LinearJob {
  DeviceWeight weight;
  float* out;   // [rows, weight.out]
  int32_t end;  // LinearJobs: units of this job and those before it
};

// Weights of one launch. Their units (tiles of slabs, or pairs of outputs of floats) are numbered
// through.
struct LinearJobs {
  LinearJob list[kMaxLinears];
  int32_t count = 0;
  int32_t units = 0;

  void add(const DeviceWeight& weight, float* out, int64_t its_units) {
    units += int32_t(its_units);
    list[count++] = {weight, out, units};
  }
  // A weight in slabs; none if it is not.
  static LinearJobs of_slabs(const DeviceWeight& weight, float* out) {
    LinearJobs jobs;
    if (in_slabs(weight.format)) jobs.add(weight, out, tile_count(weight.out));
    return jobs;
  }
};

// Weights that are all floats, up to kFewLinearRows rows. out (+)= W x.
void floats_few_rows(const Launcher& launcher, const LinearInput& input, const LinearJobs& floats,
                     bool add);
bool all_bf16(const LinearJobs& floats);

// The same, of rows that are normed on their way in; whether that can be.
bool norms_floats(const LinearInput& input, const LinearJobs& floats);
void norm_into_floats(const Launcher& launcher, const LinearInput& input, const LinearNorm& norm,
                      const LinearJobs& floats);

// Up to kFewLinearRows rows, all weights in one launch. out (+)= W x. A row that is to be normed
// can be read in fours and has at most kMostNormedSlabs, and some of its weights come in slabs.
void linear_few_rows(const Launcher& launcher, const LinearInput& input, const LinearNorm& norm,
                     const LinearJobs& slabs, const LinearJobs& floats, bool add);

// In which form these weights can take rows that come rounded, if they can, and the memory that
// those need.
std::optional<RowForm> linear_takes_rounded(const Launcher& launcher, const LinearInput& input,
                                            const LinearJobs& slabs);
size_t linear_rounded_bytes(int64_t rows, int64_t in);
// Whether some of them take nothing else.
bool linear_needs_rounded(const LinearInput& input, const LinearJobs& slabs);
// Rows that blocks have room for at a time. More had better come in calls of their own, which can
// then round them once.
int linear_rows_at_once(const Launcher& launcher, const LinearInput& input,
                        const LinearJobs& slabs);

// Rows for such weights: x, or activation(x) * up.
struct RowsToRound {
  const float* x;   // [rows, slabs * kSlabIn]
  const float* up;  // the same; null: x as it is
  RoundedTo rounded;
  int rows, slabs;
  bool quads = true;  // x, and up, can be read in fours
  bool gelu = false;
};
void round_few_rows(const Launcher& launcher, const RowsToRound& rows);

// Inputs of several parts, whose sums need memory: input.parts. All weights int4 in groups of 128,
// which take rows that come rounded, or none.
void linear_wide_rows(const Launcher& launcher, const LinearInput& input, const LinearJobs& slabs,
                      bool int4, bool add);
inline size_t part_sums_bytes(int64_t rows, int64_t in, int64_t tiles) {
  const int parts = linear_parts(in);
  return parts == 1 ? 0 : size_t(parts * rows * tiles * kTileOut) * sizeof(float);
}

// Any number of rows. Inputs are rounded once, into scratch of this size, for all weights.
// Parts of a sum need memory, too.
size_t rounded_rows_bytes(int64_t rows, int64_t in);
size_t many_rows_sums_bytes(const Launcher& launcher);
void round_rows(const Launcher& launcher, const LinearInput& input, std::byte* rounded);
void linear_many_rows(const Launcher& launcher, const std::byte* rounded, float* part_sums,
                      int64_t rows, const DeviceWeight& weight, float* out, bool add);
void linear_floats_many_rows(const Launcher& launcher, const LinearInput& input,
                             const DeviceWeight& weight, float* out, bool add);

}  // namespace slip
