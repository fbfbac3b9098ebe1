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
#include "convert/int4_descent.h"
#include "kernels/forwarding_ops.h"
#include "tensor/buffer.h"
#include "weights/weight_table.h"

namespace slip {

class CapturingOps : public ForwardingOps {
 public:
  // Both must outlive it.
  CapturingOps(Ops& ops, ThreadPool& pool) : ForwardingOps(ops), pool_(pool) {}

  // After a model was loaded through this: which matrix is which.
  void name_weights(std::span<const PlacedWeight> placed);

  // Whether the model has such a matrix: layers that share keys do not read their own.
  bool knows(const std::string& module) const { return places_.contains(module); }
  // Forgets what was captured and begins with these modules. Passes end where they leave `layer`,
  // the module that all of these are part of (empty: the model); what they would compute after it
  // is undefined.
  void watch(const std::vector<std::string>& modules, const std::string& layer);
  // What went into a watched module since; null if nothing did. Modules that share their input
  // share the products.
  const Gram* gram_of(const std::string& module);

  // Other numbers for a matrix of the model, of the same format.
  void replace(const std::string& module, const Weight& plain);

  // A pass that is replayed would show nothing. But all rows go through all layers, as in one that
  // is recorded, even where a family could leave out those whose logits nobody wants.
  void run_step(const StepKey& key, std::span<const Span> spans, const StepBody& body) override;
  bool records(int64_t) const override { return true; }
  Weight pack(const Weight& plain, std::span<std::byte> storage) override;
  // Weights that were not packed here would have no place.
  bool make_noise(const WeightInfo&, uint64_t, std::span<std::byte>, Weight&) override {
    return false;
  }
  void reserve(const StepLimits& limits) override;

  void embed(const EmbedArgs& args) override;
  void linear(const LinearArgs& args) override;
  void linears(const LinearsArgs& args) override;
  void gated_mlp(const GatedMlpArgs& args) override;
  void experts(const ExpertsArgs& args) override;
  // Its parts, so that they come by here.
  // NOLINTBEGIN(bugprone-parent-virtual-call)
  void norm_linears(const NormLinearsArgs& args) override { Ops::norm_linears(args); }
  void add_branch_linears(const AddBranchLinearsArgs& args) override {
    Ops::add_branch_linears(args);
  }
  void gated_delta_net(const GatedDeltaNetArgs& args) override { Ops::gated_delta_net(args); }
  void gate_heads_linear(const GateHeadsLinearArgs& args) override { Ops::gate_heads_linear(args); }
  void routed_experts(const RoutedExpertsArgs& args) override { Ops::routed_experts(args); }
  void mlp_and_experts(const MlpAndExpertsArgs& args) override { Ops::mlp_and_experts(args); }
  // NOLINTEND(bugprone-parent-virtual-call)

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

  void around(const char* op, FunctionRef<void()> call) override;
  bool watches(const Weight& weight) const { return watched_.contains(weight.values.data); }
  bool watches(const GatedMlp& mlp) const {
    return watches(mlp.gate) || watches(mlp.up) || watches(mlp.down);
  }
  // The pass has come to a matrix.
  void meet(const Weight& weight);
  void watched_experts(const ExpertsArgs& args);
  void capture(const View& x, const Weight& weight);
  void add_waiting(Capture& capture);

  ThreadPool& pool_;
  std::mutex mutex_;  // guards packed_: weights are packed by several threads
  std::map<std::byte*, Packed> packed_;
  std::map<std::string, std::byte*> places_;  // of modules
  std::set<const std::byte*> watched_;
  std::map<const std::byte*, std::shared_ptr<Capture>> captures_;
  std::set<const std::byte*> layer_;                // all matrices of the layer that is watched
  bool entered_ = false, ended_ = false;            // this pass has come to it; is behind it
  Buffer expert_rows_, expert_sums_, mlp_scratch_;  // of one expert
  const std::byte* last_input_ = nullptr;  // of the matrix before, if nothing came in between
  std::shared_ptr<Capture> last_capture_;
};

}  // namespace slip
