// ForwardingOps: what stands between a model and a backend. Everything goes on to the backend; what
// derives from it overrides what it cares about. The defaults of Ops are right on the host alone,
// so this is the one place where an operation that ops.h gains must not be forgotten.
#pragma once

#include "kernels/ops.h"

namespace slip {

class ForwardingOps : public Ops {
 public:
  // It must outlive this.
  explicit ForwardingOps(Ops& backend) : backend_(backend) {}

  const char* name() const override { return backend_.name(); }
  Memory& memory() const override { return backend_.memory(); }

  void run_step(const StepKey& key, std::span<const Span> spans, const StepBody& body) override {
    backend_.run_step(key, spans, body);
  }
  bool records(int64_t rows) const override { return backend_.records(rows); }
  void forget_steps(const void* owner) override { backend_.forget_steps(owner); }

  size_t packed_bytes(const WeightInfo& info) const override { return backend_.packed_bytes(info); }
  Weight pack(const Weight& plain, std::span<std::byte> storage) override {
    return backend_.pack(plain, storage);
  }
  bool make_noise(const WeightInfo& info, uint64_t seed, std::span<std::byte> storage,
                  Weight& weight) override {
    return backend_.make_noise(info, seed, storage, weight);
  }

  KvRecipe usual_kv(int64_t sequences) const override { return backend_.usual_kv(sequences); }
  int64_t prompt_rows() const override { return backend_.prompt_rows(); }
  int64_t invariant_rows() const override { return backend_.invariant_rows(); }
  size_t scratch_bytes(const StepLimits& limits) const override {
    return backend_.scratch_bytes(limits);
  }
  void reserve(const StepLimits& limits) override { backend_.reserve(limits); }

  void embed(const EmbedArgs& args) override { forward("embed", &Ops::embed, args); }
  void rms_norm(const RmsNormArgs& args) override { forward("rms_norm", &Ops::rms_norm, args); }
  void linear(const LinearArgs& args) override { forward("linear", &Ops::linear, args); }
  void gated_mul(const GatedMulArgs& args) override { forward("gated_mul", &Ops::gated_mul, args); }
  void route(const RouteArgs& args) override { forward("route", &Ops::route, args); }
  void causal_conv(const CausalConvArgs& args) override {
    forward("causal_conv", &Ops::causal_conv, args);
  }
  void delta_net(const DeltaNetArgs& args) override { forward("delta_net", &Ops::delta_net, args); }
  void gated_rms_norm(const GatedRmsNormArgs& args) override {
    forward("gated_rms_norm", &Ops::gated_rms_norm, args);
  }
  void rope_table(const RopeTableArgs& args) override {
    forward("rope_table", &Ops::rope_table, args);
  }
  void rotate_and_store(const RotateAndStoreArgs& args) override {
    forward("rotate_and_store", &Ops::rotate_and_store, args);
  }
  void attention(const AttentionArgs& args) override {
    forward("attention", &Ops::attention, args);
  }
  void gate_heads(const GateHeadsArgs& args) override {
    forward("gate_heads", &Ops::gate_heads, args);
  }
  void peaks(const PeaksArgs& args) override { forward("peaks", &Ops::peaks, args); }
  void candidates(const CandidatesArgs& args) override {
    forward("candidates", &Ops::candidates, args);
  }
  void soft_cap(const SoftCapArgs& args) override { forward("soft_cap", &Ops::soft_cap, args); }
  void join(const JoinArgs& args) override { forward("join", &Ops::join, args); }
  void add_branch(const AddBranchArgs& args) override {
    forward("add_branch", &Ops::add_branch, args);
  }
  void linears(const LinearsArgs& args) override { forward("linears", &Ops::linears, args); }
  void gated_delta_net(const GatedDeltaNetArgs& args) override {
    forward("gated_delta_net", &Ops::gated_delta_net, args);
  }
  void gate_heads_linear(const GateHeadsLinearArgs& args) override {
    forward("gate_heads_linear", &Ops::gate_heads_linear, args);
  }
  void gated_mlp(const GatedMlpArgs& args) override { forward("gated_mlp", &Ops::gated_mlp, args); }
  void experts(const ExpertsArgs& args) override { forward("experts", &Ops::experts, args); }
  void routed_experts(const RoutedExpertsArgs& args) override {
    forward("routed_experts", &Ops::routed_experts, args);
  }
  void mlp_and_experts(const MlpAndExpertsArgs& args) override {
    forward("mlp_and_experts", &Ops::mlp_and_experts, args);
  }
  void cluster_head(const ClusterHeadArgs& args) override {
    forward("cluster_head", &Ops::cluster_head, args);
  }
  void norm_linears(const NormLinearsArgs& args) override {
    forward("norm_linears", &Ops::norm_linears, args);
  }
  void add_branch_linears(const AddBranchLinearsArgs& args) override {
    forward("add_branch_linears", &Ops::add_branch_linears, args);
  }

 protected:
  Ops& backend() const { return backend_; }

  // Every operation that is not overridden comes by here; call() is the backend's.
  virtual void around([[maybe_unused]] const char* op, FunctionRef<void()> call) { call(); }

 private:
  template <class Args>
  void forward(const char* name, void (Ops::*op)(const Args&), const Args& args) {
    around(name, [&] { (backend_.*op)(args); });
  }

  Ops& backend_;
};

}  // namespace slip
