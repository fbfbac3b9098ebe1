// A backend that keeps the time of every operation: where a step's time goes.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kernels/ops.h"

namespace slip {

class TimedOps : public Ops {
 public:
  explicit TimedOps(std::unique_ptr<Ops> ops) : ops_(std::move(ops)) {}

  // Seconds since the last reset(), by name, longest first.
  struct Part {
    std::string name;
    double seconds;
  };
  std::vector<Part> parts() const;
  double seconds(const std::string& name) const;
  double total() const;
  void reset() { seconds_.fill(0); }

  const char* name() const override { return ops_->name(); }
  KvRecipe usual_kv(int64_t sequences) const override { return ops_->usual_kv(sequences); }
  bool records(int64_t rows) const override { return ops_->records(rows); }
  Memory& memory() const override { return ops_->memory(); }
  size_t packed_bytes(const WeightInfo& info) const override { return ops_->packed_bytes(info); }
  Weight pack(const Weight& plain, std::span<std::byte> storage) override {
    return ops_->pack(plain, storage);
  }
  size_t scratch_bytes(const StepLimits& limits) const override {
    return ops_->scratch_bytes(limits);
  }
  void reserve(const StepLimits& limits) override { ops_->reserve(limits); }

  void embed(const EmbedArgs& args) override { time(0, &Ops::embed, args); }
  void rms_norm(const RmsNormArgs& args) override { time(1, &Ops::rms_norm, args); }
  void linear(const LinearArgs& args) override { time(2, &Ops::linear, args); }
  void gated_mul(const GatedMulArgs& args) override { time(3, &Ops::gated_mul, args); }
  void route(const RouteArgs& args) override { time(4, &Ops::route, args); }
  void causal_conv(const CausalConvArgs& args) override { time(5, &Ops::causal_conv, args); }
  void delta_net(const DeltaNetArgs& args) override { time(6, &Ops::delta_net, args); }
  void gated_rms_norm(const GatedRmsNormArgs& args) override {
    time(7, &Ops::gated_rms_norm, args);
  }
  void rope_table(const RopeTableArgs& args) override { time(8, &Ops::rope_table, args); }
  void rotate_and_store(const RotateAndStoreArgs& args) override {
    time(9, &Ops::rotate_and_store, args);
  }
  void attention(const AttentionArgs& args) override { time(10, &Ops::attention, args); }
  void gate_heads(const GateHeadsArgs& args) override { time(11, &Ops::gate_heads, args); }
  void linears(const LinearsArgs& args) override { time(12, &Ops::linears, args); }
  void gated_mlp(const GatedMlpArgs& args) override { time(13, &Ops::gated_mlp, args); }
  void experts(const ExpertsArgs& args) override { time(14, &Ops::experts, args); }
  void soft_cap(const SoftCapArgs& args) override { time(15, &Ops::soft_cap, args); }
  void cluster_head(const ClusterHeadArgs& args) override { time(16, &Ops::cluster_head, args); }

 private:
  static constexpr std::array<const char*, 17> kNames = {
      "embed",     "rms_norm",       "linear",     "gated_mul",        "route",       "causal_conv",
      "delta_net", "gated_rms_norm", "rope_table", "rotate_and_store", "attention",   "gate_heads",
      "linears",   "gated_mlp",      "experts",    "soft_cap",         "cluster_head"};

  template <class Args>
  void time(size_t index, void (Ops::*op)(const Args&), const Args& args) {
    const Stopwatch clock;
    ((*ops_).*op)(args);
    seconds_[index] += clock.seconds();
  }

  std::unique_ptr<Ops> ops_;
  std::array<double, kNames.size()> seconds_{};
};

}  // namespace slip
