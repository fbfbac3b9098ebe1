// A backend that remembers the inner products of what goes into chosen matrices: what calibration
// needs to know of a text. It knows no model: matrices are told by where they lie. What comes after
// the chosen ones in a pass is left out.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "kernels/ops.h"
#include "quant/int4_descent.h"
#include "tensor/buffer.h"
#include "weights/weight_table.h"

namespace slip {

class CapturingOps : public Ops {
 public:
  // Both must outlive it.
  CapturingOps(Ops& ops, ThreadPool& pool) : ops_(ops), pool_(pool) {}

  // After a model was loaded through this: which matrix is which.
  void name_weights(std::span<const PlacedWeight> placed);

  // Forgets what was captured and begins with these modules. Passes end behind the last matrix
  // whose name begins with `layer`; what they would compute after it is undefined.
  void watch(const std::vector<std::string>& modules, const std::string& layer);
  // What went into a watched module since; null if nothing did. Modules that share their input
  // share the products.
  const Gram* gram_of(const std::string& module);

  // Other numbers for a matrix of the model, of the same format.
  void replace(const std::string& module, const Weight& plain);

  const char* name() const override { return ops_.name(); }
  // A pass that is replayed would show nothing.
  void run_step(const StepKey& key, std::span<const Span> spans, const StepBody& body) override;
  Memory& memory() const override { return ops_.memory(); }
  size_t packed_bytes(const WeightInfo& info) const override { return ops_.packed_bytes(info); }
  Weight pack(const Weight& plain, std::span<std::byte> storage) override;
  KvRecipe usual_kv(int64_t sequences) const override { return ops_.usual_kv(sequences); }
  int64_t prompt_rows() const override { return ops_.prompt_rows(); }
  size_t scratch_bytes(const StepLimits& limits) const override {
    return ops_.scratch_bytes(limits);
  }
  void reserve(const StepLimits& limits) override;

  void embed(const EmbedArgs& args) override {
    ended_ = false;
    forward(&Ops::embed, args);
  }
  void rms_norm(const RmsNormArgs& args) override { forward(&Ops::rms_norm, args); }
  void linear(const LinearArgs& args) override;
  void gated_mul(const GatedMulArgs& args) override { forward(&Ops::gated_mul, args); }
  void route(const RouteArgs& args) override { forward(&Ops::route, args); }
  void causal_conv(const CausalConvArgs& args) override { forward(&Ops::causal_conv, args); }
  void delta_net(const DeltaNetArgs& args) override { forward(&Ops::delta_net, args); }
  void gated_rms_norm(const GatedRmsNormArgs& args) override {
    forward(&Ops::gated_rms_norm, args);
  }
  void rope_table(const RopeTableArgs& args) override { forward(&Ops::rope_table, args); }
  void rotate_and_store(const RotateAndStoreArgs& args) override {
    forward(&Ops::rotate_and_store, args);
  }
  void attention(const AttentionArgs& args) override { forward(&Ops::attention, args); }
  void gate_heads(const GateHeadsArgs& args) override { forward(&Ops::gate_heads, args); }
  void soft_cap(const SoftCapArgs& args) override { forward(&Ops::soft_cap, args); }
  void cluster_head(const ClusterHeadArgs& args) override { forward(&Ops::cluster_head, args); }
  void peaks(const PeaksArgs& args) override { forward(&Ops::peaks, args); }
  void join(const JoinArgs& args) override { forward(&Ops::join, args); }
  void linears(const LinearsArgs& args) override;
  void gated_mlp(const GatedMlpArgs& args) override;
  void experts(const ExpertsArgs& args) override;

 private:
  struct Packed {
    WeightInfo info;
    std::span<std::byte> storage;
  };
  // Inputs that wait to be added, and the products of those that were.
  struct Capture {
    Gram gram;
    std::vector<float> waiting;  // [up to kWaitingRows, inputs]
  };

  template <class Args>
  void forward(void (Ops::*op)(const Args&), const Args& args) {
    last_input_ = nullptr;
    if (!ended_) (ops_.*op)(args);
  }
  bool watches(const Weight& weight) const { return watched_.contains(weight.values.data); }
  bool watches(const GatedMlp& mlp) const {
    return watches(mlp.gate) || watches(mlp.up) || watches(mlp.down);
  }
  bool lies_behind(const Weight& weight) const { return weight.values.data > last_place_; }
  void watched_experts(const ExpertsArgs& args);
  void capture(const View& x, const Weight& weight);
  void add_waiting(Capture& capture);

  Ops& ops_;
  ThreadPool& pool_;
  std::mutex mutex_;  // guards packed_: weights are packed by several threads
  std::map<std::byte*, Packed> packed_;
  std::map<std::string, std::byte*> places_;  // of modules
  std::set<const std::byte*> watched_;
  std::map<const std::byte*, std::shared_ptr<Capture>> captures_;
  const std::byte* last_place_ = nullptr;           // of the layer that is watched
  bool ended_ = false;                              // this pass is behind it
  Buffer expert_rows_, expert_sums_, mlp_scratch_;  // of one expert
  const std::byte* last_input_ = nullptr;  // of the matrix before, if nothing came in between
  std::shared_ptr<Capture> last_capture_;
};

}  // namespace slip
