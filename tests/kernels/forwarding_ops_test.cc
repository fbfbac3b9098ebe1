// What stands between a model and a backend hands on everything, above all what Ops has a default
// for: that default is the host's, and the backend may be elsewhere.
#include "kernels/forwarding_ops.h"

#include <gmock/gmock.h>

#include "kernels/ref/ref_ops_impl.h"

namespace slip {
namespace {

using ::testing::ElementsAre;

// Answers everything in its own way, and remembers the operations that it was asked for.
class Backend final : public RefOps {
 public:
  Memory& memory() const override { return memory_; }
  void run_step(const StepKey&, std::span<const Span>, const StepBody&) override {
    asked.emplace_back("run_step");
  }
  bool records(int64_t rows) const override { return rows == 3; }
  void forget_steps(const void*) override { asked.emplace_back("forget_steps"); }
  bool make_noise(const WeightInfo&, uint64_t, std::span<std::byte>, Weight&) override {
    return true;
  }
  KvRecipe usual_kv(int64_t) const override { return {KvCodec::bf16, KvCodec::bf16}; }
  int64_t prompt_rows() const override { return 7; }
  int64_t invariant_rows() const override { return 5; }

  void peaks(const PeaksArgs&) override { asked.emplace_back("peaks"); }
  void candidates(const CandidatesArgs&) override { asked.emplace_back("candidates"); }
  void soft_cap(const SoftCapArgs&) override { asked.emplace_back("soft_cap"); }
  void join(const JoinArgs&) override { asked.emplace_back("join"); }
  void add_branch(const AddBranchArgs&) override { asked.emplace_back("add_branch"); }
  void linears(const LinearsArgs&) override { asked.emplace_back("linears"); }
  void gated_delta_net(const GatedDeltaNetArgs&) override { asked.emplace_back("gated_delta_net"); }
  void gate_heads_linear(const GateHeadsLinearArgs&) override {
    asked.emplace_back("gate_heads_linear");
  }
  void gated_mlp(const GatedMlpArgs&) override { asked.emplace_back("gated_mlp"); }
  void experts(const ExpertsArgs&) override { asked.emplace_back("experts"); }
  void routed_experts(const RoutedExpertsArgs&) override { asked.emplace_back("routed_experts"); }
  void mlp_and_experts(const MlpAndExpertsArgs&) override { asked.emplace_back("mlp_and_experts"); }
  void cluster_head(const ClusterHeadArgs&) override { asked.emplace_back("cluster_head"); }
  void norm_linears(const NormLinearsArgs&) override { asked.emplace_back("norm_linears"); }
  void add_branch_linears(const AddBranchLinearsArgs&) override {
    asked.emplace_back("add_branch_linears");
  }

  std::vector<std::string> asked;

 private:
  class OtherMemory final : public Memory {
    std::byte* allocate(size_t, Pages) override { return nullptr; }
    void release(std::byte*, size_t) noexcept override {}
    void copy(std::byte*, const std::byte*, size_t) override {}
    void clear(std::byte*, size_t) override {}
    void upload(std::byte*, const void*, size_t) override {}
    void download(void*, const std::byte*, size_t) override {}
    bool on_host() const override { return false; }
    uint64_t free_bytes() const override { return 0; }
  };
  mutable OtherMemory memory_;
};

// All others are pure, and the compiler would miss them.
TEST(ForwardingOps, WhatHasADefaultIsTheBackends) {
  Backend backend;
  ForwardingOps ops(backend);
  Weight weight;
  EXPECT_EQ(&ops.memory(), &backend.memory());
  EXPECT_TRUE(ops.records(3));
  EXPECT_TRUE(ops.make_noise({}, 1, {}, weight));
  EXPECT_EQ(ops.usual_kv(1), (KvRecipe{KvCodec::bf16, KvCodec::bf16}));
  EXPECT_EQ(ops.prompt_rows(), 7);
  EXPECT_EQ(ops.invariant_rows(), 5);

  const GatedMlp mlp;
  ops.run_step({}, {}, [] { FAIL() << "the backend replays"; });
  ops.forget_steps(nullptr);
  ops.peaks({});
  ops.candidates({});
  ops.soft_cap({});
  ops.join({});
  ops.add_branch({});
  ops.linears({});
  const GatedMlpArgs dense{.x = {}, .mlp = mlp, .scratch = {}, .out = {}};
  ops.gated_mlp(dense);
  const ExpertsArgs experts{.x = {},
                            .ids = {},
                            .weights = {},
                            .experts = {},
                            .shared = mlp,
                            .shared_gate = {},
                            .scratch = {},
                            .out = {}};
  ops.experts(experts);
  ops.routed_experts({.logits = {}, .experts = experts});
  ops.mlp_and_experts({.mlp = dense, .experts = {.logits = {}, .experts = experts}});
  ops.cluster_head({});
  ops.norm_linears({});
  ops.add_branch_linears({});
  ops.gated_delta_net({});
  ops.gate_heads_linear({});
  EXPECT_THAT(backend.asked,
              ElementsAre("run_step", "forget_steps", "peaks", "candidates", "soft_cap", "join",
                          "add_branch", "linears", "gated_mlp", "experts", "routed_experts",
                          "mlp_and_experts", "cluster_head", "norm_linears", "add_branch_linears",
                          "gated_delta_net", "gate_heads_linear"));
}

class Around final : public ForwardingOps {
 public:
  using ForwardingOps::ForwardingOps;
  std::vector<std::string> seen;

 private:
  void around(const char* op, FunctionRef<void()> call) override {
    seen.emplace_back(op);
    if (seen.size() > 1) call();
  }
};

TEST(ForwardingOps, ADecoratorSeesEveryOperationAndMayLeaveItOut) {
  Backend backend;
  Around ops(backend);
  ops.join({});
  ops.peaks({});
  EXPECT_THAT(ops.seen, ElementsAre("join", "peaks"));
  EXPECT_THAT(backend.asked, ElementsAre("peaks"));
}

}  // namespace
}  // namespace slip
