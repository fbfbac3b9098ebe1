// CudaOps: the CUDA backend. One stream; views are in device memory; each operation is in the file
// that has its name in ref/.
#pragma once

#include <memory>
#include <utility>

#include "kernels/cuda/cluster_tables.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/spans.h"
#include "kernels/cuda/device/weight_tiles.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/packed_weight.h"
#include "kernels/cuda/step_graphs.h"
#include "kernels/ops.h"
#include "tensor/buffer.h"

namespace slip {

class CudaOps : public Ops {
 public:
  explicit CudaOps(int device);
  ~CudaOps() override;

  const char* name() const override { return "cuda"; }
  Memory& memory() const override { return *memory_; }

  size_t packed_bytes(const WeightInfo& info) const override { return cuda_packed_bytes(info); }
  Weight pack(const Weight& plain, std::span<std::byte> storage) override;  // plain: host memory

  KvRecipe usual_kv(int64_t) const override { return {KvCodec::bf16, KvCodec::bf16}; }
  int64_t prompt_rows() const override { return 2048; }  // experts are read once per step
  int64_t invariant_rows() const override { return kFewRows; }
  bool records(int64_t rows) const override { return StepGraphs::records(rows); }
  size_t scratch_bytes(const StepLimits& limits) const override;
  void reserve(const StepLimits& limits) override;

  bool make_noise(const WeightInfo& info, uint64_t seed, std::span<std::byte> storage,
                  Weight& weight) override;
  double read_bandwidth();

  void run_step(const StepKey& key, std::span<const Span> spans, const StepBody& body) override;
  void forget_steps(const void* owner) override { graphs_->forget(owner); }

  void embed(const EmbedArgs& args) override;
  void rms_norm(const RmsNormArgs& args) override;
  void linear(const LinearArgs& args) override;
  void linears(const LinearsArgs& args) override;
  void add_branch(const AddBranchArgs& args) override;
  void norm_linears(const NormLinearsArgs& args) override;
  void add_branch_linears(const AddBranchLinearsArgs& args) override;
  void gated_delta_net(const GatedDeltaNetArgs& args) override;
  void gate_heads_linear(const GateHeadsLinearArgs& args) override;
  void gated_mlp(const GatedMlpArgs& args) override;
  void gated_mul(const GatedMulArgs& args) override;
  void join(const JoinArgs& args) override;
  void soft_cap(const SoftCapArgs& args) override;
  void peaks(const PeaksArgs& args) override;
  void candidates(const CandidatesArgs& args) override;
  void route(const RouteArgs& args) override;
  void experts(const ExpertsArgs& args) override;
  void routed_experts(const RoutedExpertsArgs& args) override;
  void mlp_and_experts(const MlpAndExpertsArgs& args) override;
  void cluster_head(const ClusterHeadArgs& args) override;
  void causal_conv(const CausalConvArgs& args) override;
  void delta_net(const DeltaNetArgs& args) override;
  void gated_rms_norm(const GatedRmsNormArgs& args) override;
  void rope_table(const RopeTableArgs& args) override;
  void rotate_and_store(const RotateAndStoreArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void gate_heads(const GateHeadsArgs& args) override;

 private:
  // The device's copy of `spans`: the step's, or, outside of run_step(), made now.
  const DeviceSpan* spans_on_device(std::span<const Span> spans);

  // Positions that attention must be launched for: while a step is recorded, the end of the class
  // of lengths that the recording will serve; otherwise the longest of the spans.
  int64_t context_to_cover(std::span<const Span> spans) const;

  // What any operation of such steps needs of scratch().
  size_t largest_scratch(const StepLimits& limits) const;
  // Scratch that one operation may use from its first kernel to its last; grows outside of steps.
  std::byte* scratch(size_t bytes);
  // For blocks that count each other; all zero between launches.
  static constexpr int64_t kCounters = 4096;
  uint32_t* counters() { return reinterpret_cast<uint32_t*>(counters_.data()); }

  // `rounded`: where what is normed goes as projections take it (linear.h); null: nowhere.
  void norm_and_round(const RmsNormArgs& args, const RoundedTo& rounded);
  // Scratch of a linear layer of few rows, which takes its input.parts from it: where its rows may
  // go rounded.
  std::byte* linear_scratch(LinearInput& input, const LinearJobs& slabs);
  void run_linears(const View& x, std::span<const LinearOutput> outputs, bool add);
  // Where a GPU has no room for all rows at once.
  void run_in_halves(const View& x, std::span<const LinearOutput> outputs, bool add);
  // How experts are chosen: by these logits, which come in quads, or, where they are null, not any
  // more. A scale per expert, or null.
  struct Choosing {
    const float *logits, *scales;
  };
  // `dense`: an MLP that runs beside them, or null.
  void run_experts(const ExpertsArgs& args, const Choosing& choosing, const GatedMlpArgs* dense);
  void add_shared_expert(const ExpertsArgs& args);

  Launcher launcher_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<StepGraphs> graphs_;
  Buffer scratch_;
  Buffer counters_;
  WeightPacker packer_;
  ExpertTables expert_tables_;
  const std::byte* last_delta_states_ = nullptr;  // of gated_delta_net()
  ClusterTables cluster_tables_;
};

}  // namespace slip
