// Mixture of experts on the device: what the kernels for few rows (experts_decode.cu) and for many
// (experts_prefill.cu) share on the host's side.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/weight_tiles.h"
#include "kernels/ops.h"

namespace slip {

inline constexpr int kMostExperts = 512;
inline constexpr int kMostTopK = 16;

// One weight of an expert, short enough that a layer's lie in a few lines of cache. Its shape is
// known from the kernel's arguments.
struct alignas(16) ExpertWeight {
  const std::byte* values;
  uint32_t scales_at;  // from there, in units of 256 bytes
  uint16_t group;
  DeviceFormat format;

  bool operator==(const ExpertWeight&) const = default;
};

ExpertWeight expert_weight(const Weight& weight);

// How weights want their activations: int4 in groups of 128, or where all are in groups of 64, as
// integers (int4_products.cuh), other slabs as f16, floats as they are.
struct InputForms {
  bool integers = false, halves = false;
  // Whether all weights are; int4: in groups of 128, or of 64.
  bool int4 = true, int4_64 = true, fp8 = true, f16 = true;

  void add(const ExpertWeight& weight) {
    const bool is_int4 = weight.format == DeviceFormat::int4_group && weight.group == kSlabIn;
    integers |= is_int4;
    halves |= !is_int4 && in_slabs(weight.format);
    int4 &= is_int4;
    int4_64 &= weight.format == DeviceFormat::int4_group && weight.group == kSlabIn / 2;
    fp8 &= weight.format == DeviceFormat::fp8_block;
    f16 &= weight.format == DeviceFormat::f16_slabs;
  }
};

struct DeviceMlp {
  ExpertWeight gate, up, down;
};

// One matrix of all experts of a layer, where they lie at equal distances, as loaders place them.
// Then nobody has to wait for a look-up.
struct ExpertRow {
  ExpertWeight first;
  int64_t stride = 0;  // bytes from one expert's to the next one's; 0: they lie elsewhere
};

enum ExpertMatrix : int32_t { kGate, kUp, kDown, kExpertMatrices };

// Tables of layers' experts in device memory, made when a layer is first seen and kept. A step may
// not allocate, but its first pass may meet new layers: they come out of memory taken in pieces.
class ExpertTables {
 public:
  ExpertTables() = default;
  ~ExpertTables();
  ExpertTables(const ExpertTables&) = delete;
  ExpertTables& operator=(const ExpertTables&) = delete;

  struct Table {
    std::vector<ExpertWeight> host;
    ExpertWeight* device = nullptr;  // [kExpertMatrices][experts]
    ExpertRow rows[kExpertMatrices];
    InputForms forms, down_forms;  // of gate and up, of down
  };

  // The first call for a layer, or the first after its weights have moved, may not be recorded;
  // calling it ahead of the first step is enough.
  const Table& of(std::span<const GatedMlp> experts, cudaStream_t stream, Memory& memory);

 private:
  ExpertWeight* allocate(size_t count);

  std::unordered_map<const GatedMlp*, Table> tables_;
  std::vector<ExpertWeight> current_;
  std::vector<void*> pieces_;
  ExpertWeight* free_ = nullptr;
  size_t free_count_ = 0;
};

// One call of CudaOps::experts() as kernels take it. Rows may be part of the call's.
struct ExpertsStep {
  const float* x;             // [rows, hidden]
  const float* logits;        // [rows, experts]; null: experts have been chosen
  const float* scales;        // [experts], of weights; null: 1
  int32_t* ids;               // [rows, top_k]
  float* weights;             // [rows, top_k]
  const float* shared_x;      // [rows, hidden]
  const float* shared_gate;   // [rows]; null with shared_out
  float* shared_out;          // [rows, hidden]; null: the shared expert is added to the others
  float* out;                 // [rows, hidden]
  const ExpertWeight* table;  // [kExpertMatrices][experts]
  ExpertRow weights_of[kExpertMatrices];
  DeviceMlp shared;
  InputForms forms, shared_forms;  // of gate and up
  InputForms down_forms, shared_down_forms;
  bool gelu;  // instead of SiLU
  bool add;   // to what is in `out`
  int32_t rows, hidden;
  int32_t top_k;  // 0: the shared expert alone
  int32_t experts, width;
  int32_t shared_width;  // 0: no shared expert
};

// Experts of which the kernels for few rows choose a row's themselves, if logits come in quads.
inline constexpr int kChosenPerLane = 8;
inline constexpr int kMostChoosable = kChosenPerLane * 32;

// Any weights, kFewRows rows at a time or fewer. `activations` has room for [rows * top_k, width]
// and [rows, shared_width].
void run_few_rows(const Launcher& launcher, const ExpertsStep& step, float* activations);

// Any number of rows, of weights in slabs whose gate and up have one format.
void run_many_rows(const Launcher& launcher, const ExpertsStep& step, std::byte* scratch);
size_t many_rows_scratch_bytes(int64_t rows, int64_t hidden, int64_t top_k, int64_t experts,
                               int64_t width, int64_t shared_width);

// The most that CudaOps::experts() asks scratch() for.
size_t experts_scratch_bytes(const StepLimits& limits);

}  // namespace slip
