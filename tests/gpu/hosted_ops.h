// HostedOps: a backend that computes in memory of its own, for tests whose tensors lie on the host.
//
// Every operation runs on copies, and what it may have written comes back: exactly the bytes of the
// views. Copies lie between guards of NaN, as badly aligned as the originals, and outputs are
// copied over too, so that what was not written is what the test left there. Writing beside a view,
// or to one that is only read, fails the test. Views that are the same on the host are the same
// there; those that merely overlap are not.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "kernels/forwarding_ops.h"
#include "tensor/buffer.h"

namespace slip {

class HostedOps final : public ForwardingOps {
 public:
  explicit HostedOps(std::unique_ptr<Ops> far);

  Memory& memory() const override { return host_memory(); }
  // What is recorded refers to copies that are gone.
  void run_step(const StepKey&, std::span<const Span>, const StepBody& body) override { body(); }
  bool records(int64_t) const override { return false; }

  // The packed weight lies in the backend's memory, for as long as nothing else is packed to the
  // same `storage`, which itself stays unused.
  Weight pack(const Weight& plain, std::span<std::byte> storage) override;

  void embed(const EmbedArgs& args) override;
  void rms_norm(const RmsNormArgs& args) override;
  void linear(const LinearArgs& args) override;
  void gated_mul(const GatedMulArgs& args) override;
  void route(const RouteArgs& args) override;
  void causal_conv(const CausalConvArgs& args) override;
  void delta_net(const DeltaNetArgs& args) override;
  void gated_rms_norm(const GatedRmsNormArgs& args) override;
  void rope_table(const RopeTableArgs& args) override;
  void rotate_and_store(const RotateAndStoreArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void gate_heads(const GateHeadsArgs& args) override;
  void peaks(const PeaksArgs& args) override;
  void candidates(const CandidatesArgs& args) override;
  void soft_cap(const SoftCapArgs& args) override;
  void join(const JoinArgs& args) override;
  void linears(const LinearsArgs& args) override;
  void gated_delta_net(const GatedDeltaNetArgs& args) override;
  void gate_heads_linear(const GateHeadsLinearArgs& args) override;
  void gated_mlp(const GatedMlpArgs& args) override;
  void experts(const ExpertsArgs& args) override;
  void routed_experts(const RoutedExpertsArgs& args) override;
  void mlp_and_experts(const MlpAndExpertsArgs& args) override;
  void add_branch(const AddBranchArgs& args) override;
  void norm_linears(const NormLinearsArgs& args) override;
  void add_branch_linears(const AddBranchLinearsArgs& args) override;
  void cluster_head(const ClusterHeadArgs& args) override;

 private:
  using Views = std::vector<View*>;

  // Points the views at copies, calls, and brings back what was written.
  void run(const char* op, const Views& read, const Views& written, FunctionRef<void()> call);

  // Whether [begin, end) of `weight` is still poisoned.
  bool untouched(const Buffer& weight, size_t begin, size_t end);

  std::unique_ptr<Ops> far_;
  Buffer copies_;  // of the current operation's views
  std::unordered_map<const std::byte*, Buffer> weights_;
  std::vector<std::byte> sent_, returned_;
};

}  // namespace slip
