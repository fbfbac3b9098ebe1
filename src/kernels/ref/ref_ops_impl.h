// The class behind make_ref_ops(); one file per family of ops.
#pragma once

#include "kernels/dims.h"
#include "kernels/ops.h"

namespace slip {

class RefOps : public Ops {
 public:
  const char* name() const override { return "ref"; }

  // The plain layout is kept: weight_at() defines every value.
  size_t packed_bytes(const WeightInfo& info) const override { return plain_bytes(info); }
  Weight pack(const Weight& plain, std::span<std::byte> storage) override;
  size_t scratch_bytes(const StepLimits&) const override { return 0; }
  void reserve(const StepLimits&) override {}

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
};

}  // namespace slip
