#include "slipstream/bench/recording_ops.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace slip {
namespace {

std::string describe(const Weight& weight) {
  return cat(name_of(weight.info.format), " ", weight.info.out, " x ", weight.info.in);
}

uint64_t bytes_of(const Weight& weight) { return weight.values.bytes(); }
uint64_t bytes_of(const GatedMlp& mlp) {
  return bytes_of(mlp.gate) + bytes_of(mlp.up) + bytes_of(mlp.down);
}
// Rows choose at random: so many different experts are to be expected.
uint64_t bytes_of(const ExpertsArgs& args) {
  const auto all = double(args.experts.size());
  const double missed = 1 - double(args.ids.shape[1]) / all;
  const double used = all * (1 - std::pow(missed, double(args.x.shape[0])));
  const uint64_t shared = args.shared.gate.empty() ? 0 : bytes_of(args.shared);
  return uint64_t(used * double(bytes_of(args.experts[0]))) + shared;
}
// States that are read and, where they change, written.
uint64_t bytes_of(const View& states, std::span<const Span> spans) {
  uint64_t bytes = 0;
  const uint64_t slot = states.bytes() / uint64_t(states.shape[0]);
  for (const Span& span : spans) bytes += (span.record ? 1 : 2) * slot;
  return bytes;
}

}  // namespace

void RecordingOps::run_step(const StepKey& key, std::span<const Span> spans, const StepBody& body) {
  if (!recording_) return backend().run_step(key, spans, body);
  calls_.clear();
  spans_.assign(spans.begin(), spans.end());
  body();
}

// Operations with spans are run again with those of whoever runs them.
template <class Args>
void RecordingOps::run(void (Ops::*op)(const Args&), const Args& args, std::string label,
                       uint64_t bytes) {
  if (recording_)
    calls_.push_back({std::move(label), bytes, [op, args](Ops& ops, std::span<const Span> spans) {
                        if constexpr (requires { args.spans; }) {
                          Args again = args;
                          again.spans = spans;
                          (ops.*op)(again);
                        } else {
                          (ops.*op)(args);
                        }
                      }});
  (backend().*op)(args);
}

void RecordingOps::embed(const EmbedArgs& args) { run(&Ops::embed, args, "embed"); }
void RecordingOps::rms_norm(const RmsNormArgs& args) { run(&Ops::rms_norm, args, "rms_norm"); }
void RecordingOps::gated_mul(const GatedMulArgs& args) { run(&Ops::gated_mul, args, "gated_mul"); }
void RecordingOps::peaks(const PeaksArgs& args) { run(&Ops::peaks, args, "peaks", args.x.bytes()); }
void RecordingOps::route(const RouteArgs& args) { run(&Ops::route, args, "route"); }
void RecordingOps::causal_conv(const CausalConvArgs& args) {
  run(&Ops::causal_conv, args, "causal_conv");
}
void RecordingOps::gated_rms_norm(const GatedRmsNormArgs& args) {
  run(&Ops::gated_rms_norm, args, "gated_rms_norm");
}
void RecordingOps::rope_table(const RopeTableArgs& args) {
  run(&Ops::rope_table, args, "rope_table");
}
void RecordingOps::rotate_and_store(const RotateAndStoreArgs& args) {
  run(&Ops::rotate_and_store, args, "rotate_and_store");
}
void RecordingOps::gate_heads(const GateHeadsArgs& args) {
  run(&Ops::gate_heads, args, "gate_heads");
}
void RecordingOps::soft_cap(const SoftCapArgs& args) { run(&Ops::soft_cap, args, "soft_cap"); }
void RecordingOps::join(const JoinArgs& args) { run(&Ops::join, args, "join"); }
void RecordingOps::gated_mlp(const GatedMlpArgs& args) {
  run(&Ops::gated_mlp, args, "gated_mlp", bytes_of(args.mlp));
}

void RecordingOps::linear(const LinearArgs& args) {
  run(&Ops::linear, args, "linear " + describe(args.weight), bytes_of(args.weight));
}

void RecordingOps::delta_net(const DeltaNetArgs& args) {
  run(&Ops::delta_net, args, "delta_net", bytes_of(args.state, args.spans));
}

// On the host these are their parts, each of which is worth a line.
// NOLINTBEGIN(bugprone-parent-virtual-call)
void RecordingOps::gate_heads_linear(const GateHeadsLinearArgs& args) {
  if (memory().on_host()) return Ops::gate_heads_linear(args);
  run(&Ops::gate_heads_linear, args, "gate_heads_linear " + describe(args.weight),
      bytes_of(args.weight));
}

void RecordingOps::gated_delta_net(const GatedDeltaNetArgs& args) {
  if (memory().on_host()) return Ops::gated_delta_net(args);
  run(&Ops::gated_delta_net, args, "gated_delta_net " + describe(args.weight),
      bytes_of(args.state, args.spans) + bytes_of(args.weight));
}

void RecordingOps::routed_experts(const RoutedExpertsArgs& args) {
  if (memory().on_host()) return Ops::routed_experts(args);
  const ExpertsArgs& experts = args.experts;
  run(&Ops::routed_experts, args, "routed_experts " + describe(experts.experts[0].gate),
      bytes_of(experts));
}

void RecordingOps::mlp_and_experts(const MlpAndExpertsArgs& args) {
  if (memory().on_host()) return Ops::mlp_and_experts(args);
  const ExpertsArgs& experts = args.experts.experts;
  run(&Ops::mlp_and_experts, args,
      cat("mlp_and_experts ", describe(args.mlp.mlp.gate), ", ", describe(experts.experts[0].gate)),
      bytes_of(args.mlp.mlp) + bytes_of(experts));
}
// NOLINTEND(bugprone-parent-virtual-call)

void RecordingOps::attention(const AttentionArgs& args) {
  uint64_t bytes = 0;
  for (const Span& span : args.spans) {
    int64_t seen = span.start + span.rows;
    if (args.window > 0) seen = std::min(seen, args.window + span.rows - 1);
    bytes += uint64_t(seen * args.kv.keys.shape[1]) *
             bytes_per_position(args.kv.recipe, args.q.shape[2]);
  }
  run(&Ops::attention, args, "attention", bytes);
}

void RecordingOps::add_branch(const AddBranchArgs& args) {
  if (recording_) {
    const auto outputs =
        std::make_shared<std::vector<NormOutput>>(args.outputs.begin(), args.outputs.end());
    calls_.push_back({"add_branch", 0, [args, outputs](Ops& ops, std::span<const Span>) {
                        AddBranchArgs again = args;
                        again.outputs = *outputs;
                        ops.add_branch(again);
                      }});
  }
  backend().add_branch(args);
}

void RecordingOps::linears(const LinearsArgs& args) {
  record_outputs("linears", args.outputs, [x = args.x](Ops& ops, const auto& outputs) {
    ops.linears({.x = x, .outputs = outputs});
  });
  backend().linears(args);
}

void RecordingOps::norm_linears(const NormLinearsArgs& args) {
  record_outputs("norm_linears", args.outputs, [norm = args.norm](Ops& ops, const auto& outputs) {
    ops.norm_linears({.norm = norm, .outputs = outputs});
  });
  backend().norm_linears(args);
}

void RecordingOps::add_branch_linears(const AddBranchLinearsArgs& args) {
  const std::vector<NormOutput> normed(args.branch.outputs.begin(), args.branch.outputs.end());
  record_outputs("add_branch_linears", args.outputs,
                 [branch = args.branch, normed](Ops& ops, const auto& outputs) {
                   AddBranchArgs again = branch;
                   again.outputs = normed;
                   ops.add_branch_linears({.branch = again, .outputs = outputs});
                 });
  backend().add_branch_linears(args);
}

template <class Again>
void RecordingOps::record_outputs(std::string label, std::span<const LinearOutput> args,
                                  Again again) {
  if (!recording_) return;
  const auto outputs = std::make_shared<std::vector<LinearOutput>>(args.begin(), args.end());
  uint64_t bytes = 0;
  for (const LinearOutput& output : *outputs) {
    label += (bytes == 0 ? " " : ", ") + describe(output.weight);
    bytes += bytes_of(output.weight);
  }
  calls_.push_back({std::move(label), bytes, [outputs, again](Ops& ops, std::span<const Span>) {
                      again(ops, std::span<const LinearOutput>(*outputs));
                    }});
}

void RecordingOps::experts(const ExpertsArgs& args) {
  run(&Ops::experts, args, "experts " + describe(args.experts[0].gate), bytes_of(args));
}

void RecordingOps::cluster_head(const ClusterHeadArgs& args) {
  run(&Ops::cluster_head, args, "cluster_head",
      uint64_t(args.chosen.count()) * bytes_of(args.clusters[0]));
}

}  // namespace slip
