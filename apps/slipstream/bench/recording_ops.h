// A backend that remembers the operations of a pass, so that each kind can be run again and again
// by itself: how fast a kernel is at the shapes of a model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/forwarding_ops.h"

namespace slip {

struct RecordedCall {
  std::string label;   // of its kind: "linear int4 3072 x 8192"
  uint64_t bytes = 0;  // of weights or state that it must read and write
  std::function<void(Ops&, std::span<const Span>)> again;
};

class RecordingOps : public ForwardingOps {
 public:
  using ForwardingOps::ForwardingOps;

  // Remembers the calls of the last pass before stop(). Everything they refer to must stay where it
  // is.
  void start() { recording_ = true; }
  void stop() { recording_ = false; }
  const std::vector<RecordedCall>& calls() const { return calls_; }
  std::span<const Span> spans() const { return spans_; }

  void run_step(const StepKey& key, std::span<const Span> spans, const StepBody& body) override;

  void embed(const EmbedArgs& args) override;
  void rms_norm(const RmsNormArgs& args) override;
  void linear(const LinearArgs& args) override;
  void gated_mul(const GatedMulArgs& args) override;
  void peaks(const PeaksArgs& args) override;
  void route(const RouteArgs& args) override;
  void causal_conv(const CausalConvArgs& args) override;
  void delta_net(const DeltaNetArgs& args) override;
  void gated_rms_norm(const GatedRmsNormArgs& args) override;
  void rope_table(const RopeTableArgs& args) override;
  void rotate_and_store(const RotateAndStoreArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void gate_heads(const GateHeadsArgs& args) override;
  void join(const JoinArgs& args) override;
  void add_branch(const AddBranchArgs& args) override;
  void linears(const LinearsArgs& args) override;
  void gated_delta_net(const GatedDeltaNetArgs& args) override;
  void gate_heads_linear(const GateHeadsLinearArgs& args) override;
  void gated_mlp(const GatedMlpArgs& args) override;
  void experts(const ExpertsArgs& args) override;
  void routed_experts(const RoutedExpertsArgs& args) override;
  void mlp_and_experts(const MlpAndExpertsArgs& args) override;
  void soft_cap(const SoftCapArgs& args) override;
  void cluster_head(const ClusterHeadArgs& args) override;
  void norm_linears(const NormLinearsArgs& args) override;
  void add_branch_linears(const AddBranchLinearsArgs& args) override;

 private:
  template <class Args>
  void run(void (Ops::*op)(const Args&), const Args& args, std::string label, uint64_t bytes = 0);
  template <class Again>
  void record_outputs(std::string label, std::span<const LinearOutput> args, Again again);

  bool recording_ = false;
  std::vector<RecordedCall> calls_;
  std::vector<Span> spans_;  // of the pass
};

}  // namespace slip
