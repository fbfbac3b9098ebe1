#include "kernels/ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/dims.h"

namespace slip {

StepLimits largest(const StepLimits& a, const StepLimits& b) {
  return {.rows = std::max(a.rows, b.rows),
          .widest_input = std::max(a.widest_input, b.widest_input),
          .top_k = std::max(a.top_k, b.top_k),
          .experts = std::max(a.experts, b.experts),
          .expert_width = std::max(a.expert_width, b.expert_width),
          .hidden = std::max(a.hidden, b.hidden),
          .q_heads = std::max(a.q_heads, b.q_heads),
          .head_dim = std::max(a.head_dim, b.head_dim),
          .context = std::max(a.context, b.context)};
}

void Ops::run_step(const StepKey&, std::span<const Span>, const StepBody& body) { body(); }

void Ops::join(const JoinArgs& args) {
  check_shapes(args);
  const int64_t rows = args.a.shape[0];
  for (int64_t row = 0; row < rows; ++row) {
    const View a = args.a.slice(row, 1), b = args.b.slice(row, 1);
    std::byte* out = args.out.slice(row, 1).data;
    memory().copy(out, a.data, a.bytes());
    memory().copy(out + a.bytes(), b.data, b.bytes());
  }
}

void Ops::peaks(const PeaksArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], width = dims["width"];
  for (int64_t row = 0; row < rows; ++row) {
    const float* x = args.x.f32() + row * width;
    Peak peak{0, -INFINITY, -INFINITY};  // what is no number is never larger
    for (int64_t i = 0; i < width; ++i) {
      if (x[i] > peak.value) {
        peak = {int32_t(i), x[i], peak.value};
      } else if (x[i] > peak.runner_up) {
        peak.runner_up = x[i];
      }
    }
    args.put(row, peak);
  }
}

void Ops::candidates(const CandidatesArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], width = dims["width"];
  for (int64_t row = 0; row < rows; ++row) {
    const float* x = args.x.f32() + row * width;
    Candidates best;
    best.fill({-1, -INFINITY});
    int64_t found = 0;
    for (int64_t i = 0; i < width; ++i) {
      const float value = std::isnan(x[i]) ? -INFINITY : x[i] + 0.0f;  // -0 + 0 is 0
      int64_t place = found;
      while (place > 0 && value > best[size_t(place - 1)].value) --place;
      if (place == kCandidates) continue;
      found = std::min(found + 1, kCandidates);
      for (int64_t behind = found - 1; behind > place; --behind)
        best[size_t(behind)] = best[size_t(behind - 1)];
      best[size_t(place)] = {int32_t(i), value};
    }
    std::memcpy(args.out.i32() + row * 2 * kCandidates, best.data(), sizeof(best));
  }
}

void Ops::soft_cap(const SoftCapArgs& args) {
  check_shapes(args);
  const double cap = double(args.cap);
  float* x = args.x.f32();
  for (int64_t i = 0; i < args.x.count(); ++i) x[i] = float(cap * std::tanh(double(x[i]) / cap));
}

void Ops::linears(const LinearsArgs& args) {
  for (const LinearOutput& output : args.outputs)
    linear({.x = args.x, .weight = output.weight, .out = output.out});
}

void Ops::add_branch(const AddBranchArgs& args) {
  check_shapes(args);
  const View& branch = args.branch;
  const float eps = args.eps;
  if (!args.beside.empty()) {
    rms_norm({.x = branch, .scale = args.branch_scale, .out = branch, .eps = eps});
    rms_norm(
        {.x = args.beside, .scale = args.beside_scale, .out = branch, .eps = eps, .add = true});
  }
  const View& sum = args.joined();
  if (sum.data != args.residual.data)
    memory().copy(sum.data, args.residual.data, args.residual.bytes());
  rms_norm({.x = branch,
            .scale = args.scale,
            .out = sum,
            .eps = eps,
            .add = true,
            .factor = args.factor});
  for (const NormOutput& output : args.outputs)
    rms_norm(
        {.x = sum, .scale = output.scale, .out = output.out, .eps = eps, .factor = output.factor});
}

void Ops::norm_linears(const NormLinearsArgs& args) {
  rms_norm(args.norm);
  linears({.x = args.norm.out, .outputs = args.outputs});
}

void Ops::add_branch_linears(const AddBranchLinearsArgs& args) {
  check(!args.branch.outputs.empty(), "add_branch_linears: a branch without outputs");
  // The first output is normed on its way into the weights.
  const NormOutput& first = args.branch.outputs.front();
  AddBranchArgs branch = args.branch;
  branch.outputs = branch.outputs.subspan(1);
  add_branch(branch);
  norm_linears({.norm = {.x = branch.joined(),
                         .scale = first.scale,
                         .out = first.out,
                         .eps = branch.eps,
                         .factor = first.factor},
                .outputs = args.outputs});
}

void Ops::gated_delta_net(const GatedDeltaNetArgs& args) {
  causal_conv(args.convolution());
  delta_net(args.delta_rule());
  gated_rms_norm(args.norm());
  linear(args.projection());
}

void Ops::gate_heads_linear(const GateHeadsLinearArgs& args) {
  gate_heads(args.gating());
  linear(args.projection());
}

void Ops::gated_mlp(const GatedMlpArgs& args) {
  check_shapes(args);
  const int64_t rows = args.x.shape[0];
  const int64_t width = args.mlp.gate.info.out;
  float* scratch = args.scratch.f32();
  const View gate{reinterpret_cast<std::byte*>(scratch), DType::f32, {rows, width}};
  const View up{reinterpret_cast<std::byte*>(scratch + rows * width), DType::f32, {rows, width}};
  const LinearOutput outputs[] = {{args.mlp.gate, gate}, {args.mlp.up, up}};
  linears({.x = args.x, .outputs = outputs});
  gated_mul({.gate = gate, .up = up, .out = gate, .activation = args.activation});
  linear({.x = gate, .weight = args.mlp.down, .out = args.out, .add = args.add});
}

void Ops::experts(const ExpertsArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = args.x.shape[0];
  const int64_t hidden = args.x.shape[1];
  const int64_t top_k = args.ids.shape[1];
  // One row at a time: [hidden] of output, then the MLP's own scratch.
  const View single{args.scratch.data, DType::f32, {1, hidden}};
  const auto add_scaled = [&](const GatedMlp& mlp, int64_t row, float weight) {
    const float* output = single.f32();
    const View mlp_scratch{
        args.scratch.data + size_t(hidden) * sizeof(float), DType::f32, {2, mlp.gate.info.out}};
    gated_mlp({.x = args.x.slice(row, 1),
               .mlp = mlp,
               .scratch = mlp_scratch,
               .out = single,
               .activation = args.activation,
               .add = false});
    float* out = args.out.f32() + row * hidden;
    for (int64_t i = 0; i < hidden; ++i) out[i] += weight * output[i];
  };
  if (!args.add) std::fill_n(args.out.f32(), rows * hidden, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t rank = 0; rank < top_k; ++rank) {
      const int32_t expert = args.ids.i32()[row * top_k + rank];
      dims.require(expert >= 0 && expert < int64_t(args.experts.size()), "expert ", expert, " of ",
                   args.experts.size());
      add_scaled(args.experts[size_t(expert)], row, args.weights.f32()[row * top_k + rank]);
    }
    if (!args.shared.gate.empty())
      add_scaled(args.shared, row, 1.0f / (1.0f + std::exp(-args.shared_gate.f32()[row])));
  }
}

void Ops::routed_experts(const RoutedExpertsArgs& args) {
  route(args.routing());
  experts(args.experts);
}

void Ops::mlp_and_experts(const MlpAndExpertsArgs& args) {
  gated_mlp(args.mlp);
  routed_experts(args.experts);
}

void Ops::cluster_head(const ClusterHeadArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], top_k = dims["top_k"], size = dims["cluster_size"];
  const int64_t vocabulary = dims["vocabulary"], asked = top_k * size;
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t* chosen = args.chosen.i32() + row * top_k;
    float* logits = args.scratch.f32() + row * asked;
    for (int64_t rank = 0; rank < top_k; ++rank)
      linear({.x = args.x.slice(row, 1),
              .weight = args.clusters[size_t(chosen[rank])],
              .out = {reinterpret_cast<std::byte*>(logits + rank * size), DType::f32, {1, size}}});
    float* out = args.out.f32() + row * vocabulary;
    std::fill_n(out, vocabulary, *std::min_element(logits, logits + asked) - 1);
    for (int64_t i = 0; i < asked; ++i)
      out[args.tokens.i32()[chosen[i / size] * size + i % size]] = logits[i];
  }
}

}  // namespace slip
