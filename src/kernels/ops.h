// Ops: the operations that a model may call. One forward pass is written over this interface; a
// backend is an implementation of it. kernels/ref is the specification of each, and ops.cc that of
// those that have a default.
//
// On the decode and verify path every operation is row-invariant: the result of a row does not
// depend on how many rows, or which, are computed beside it.
#pragma once

#include <limits>
#include <memory>
#include <span>

#include "base/function_ref.h"
#include "kernels/args.h"
#include "tensor/memory.h"

namespace slip {

// The largest step a model will run; lets a backend allocate its scratch before the first one.
struct StepLimits {
  int64_t rows = 0;
  int64_t widest_input = 0;  // of any linear layer
  int64_t top_k = 0;         // experts per row; 0 without experts
  int64_t experts = 0;
  int64_t expert_width = 0;  // the wider of routed and shared
  int64_t hidden = 0;
  int64_t q_heads = 0;
  int64_t head_dim = 0;
  int64_t context = 0;  // positions one sequence may have
};

// Room for steps of either size.
StepLimits largest(const StepLimits& a, const StepLimits& b);

// What the operations of a step depend on, apart from what lies in memory and in its spans: two
// steps with equal keys call the same operations with the same arguments.
struct StepKey {
  const void* owner = nullptr;  // the model, and which of its passes
  int64_t kind = 0;
  int64_t passes = 1;  // back to back in this step; what follows is the first one's
  int64_t rows = 0;
  int64_t outputs = 0;
  int64_t first_output = 0;
  const void* buffers[6] = {};  // of the caller: a pass may be given different ones

  bool operator==(const StepKey&) const = default;
};
using StepBody = FunctionRef<void()>;

class Ops {
 public:
  virtual ~Ops() = default;

  virtual const char* name() const = 0;

  // Where the views of all arguments lie.
  virtual Memory& memory() const { return host_memory(); }

  // Passes over rows of `spans`, of all of them or of neighbours: calls body(), or, in a backend
  // that records what it launches, replays what a step with this key, spans of the same rows and
  // contexts of a similar length did.
  virtual void run_step(const StepKey& key, std::span<const Span> spans, const StepBody& body);
  // Whether steps of so many rows may be replayed. Their operations take spans of the step and no
  // others.
  virtual bool records(int64_t) const { return false; }
  // Passes of this owner will not come again: what they refer to is about to go.
  virtual void forget_steps(const void*) {}

  // Weights are handed over in the plain layout, in host memory, and kept in the backend's own.
  virtual size_t packed_bytes(const WeightInfo& info) const = 0;
  virtual Weight pack(const Weight& plain, std::span<std::byte> storage) = 0;

  // Fills `storage` with random weights of a usual size, for models without files; false: this
  // backend cannot, and the source's own numbers are packed.
  virtual bool make_noise(const WeightInfo&, uint64_t, std::span<std::byte>, Weight&) {
    return false;
  }

  // How keys and values are kept when nobody says; `sequences`: how many run at once, 0: many.
  virtual KvRecipe usual_kv([[maybe_unused]] int64_t sequences) const { return {}; }

  // Rows of a prompt that are best computed together.
  virtual int64_t prompt_rows() const { return 512; }

  // In steps of up to so many rows, a row's bits do not depend on the rows beside it, nor on how
  // its text was cut into steps. Longer steps are prompts and may be computed in another way.
  virtual int64_t invariant_rows() const { return std::numeric_limits<int64_t>::max(); }

  // Scratch for steps of this size; scratch_bytes() is what reserve() will take.
  virtual size_t scratch_bytes(const StepLimits& limits) const = 0;
  virtual void reserve(const StepLimits& limits) = 0;

  virtual void embed(const EmbedArgs& args) = 0;
  virtual void rms_norm(const RmsNormArgs& args) = 0;
  virtual void linear(const LinearArgs& args) = 0;
  virtual void gated_mul(const GatedMulArgs& args) = 0;
  virtual void route(const RouteArgs& args) = 0;
  virtual void causal_conv(const CausalConvArgs& args) = 0;
  virtual void delta_net(const DeltaNetArgs& args) = 0;
  virtual void gated_rms_norm(const GatedRmsNormArgs& args) = 0;
  virtual void rope_table(const RopeTableArgs& args) = 0;
  virtual void rotate_and_store(const RotateAndStoreArgs& args) = 0;
  virtual void attention(const AttentionArgs& args) = 0;
  virtual void gate_heads(const GateHeadsArgs& args) = 0;

  virtual void peaks(const PeaksArgs& args);
  virtual void candidates(const CandidatesArgs& args);
  virtual void soft_cap(const SoftCapArgs& args);

  // Fused operations: the default is the composition, so the test of an override is that it equals
  // this.
  virtual void join(const JoinArgs& args);
  virtual void add_branch(const AddBranchArgs& args);
  virtual void linears(const LinearsArgs& args);
  virtual void norm_linears(const NormLinearsArgs& args);
  virtual void add_branch_linears(const AddBranchLinearsArgs& args);
  virtual void gated_delta_net(const GatedDeltaNetArgs& args);
  virtual void gate_heads_linear(const GateHeadsLinearArgs& args);
  virtual void gated_mlp(const GatedMlpArgs& args);
  virtual void experts(const ExpertsArgs& args);
  virtual void routed_experts(const RoutedExpertsArgs& args);
  virtual void mlp_and_experts(const MlpAndExpertsArgs& args);
  virtual void cluster_head(const ClusterHeadArgs& args);
};

}  // namespace slip
