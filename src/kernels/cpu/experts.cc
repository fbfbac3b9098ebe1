// Mixture of experts in two parallel regions: gate, up and activation of all selected experts and
// the shared one; then down, weighted and summed in rank order.
#include "kernels/cpu/experts.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {
namespace {

bool same_format(const WeightInfo& a, const WeightInfo& b) {
  return a.format == b.format && a.group == b.group;
}

// Rows are rounded once for all experts, so those that a step runs must agree on how. Files made by
// one quantizer do; anything else takes the composition, which has the same bits.
bool uniform(const ExpertsArgs& args, std::span<const int32_t> active) {
  const GatedMlp& first = args.experts[0];
  for (const int32_t id : active) {
    const GatedMlp& expert = args.experts[size_t(id)];
    if (!same_format(expert.gate.info, first.gate.info) ||
        !same_format(expert.up.info, first.gate.info) ||
        !same_format(expert.down.info, first.down.info))
      return false;
  }
  const auto compatible = [](const WeightInfo& a, const WeightInfo& b) {
    return !uses_integer_activations(a.format) || !uses_integer_activations(b.format) ||
           activation_group(a) == activation_group(b);
  };
  if (args.shared.gate.empty()) return true;
  return compatible(args.shared.gate.info, first.gate.info) &&
         compatible(args.shared.up.info, first.gate.info);
}

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void CpuOps::route(const RouteArgs& args) {
  check_shapes(args);
  const int64_t rows = args.logits.shape[0], experts = args.logits.shape[1];
  const int64_t top_k = args.ids.shape[1];
  for_rows(rows, rows * experts * top_k, [&](int64_t row) {
    const float* logits = args.logits.f32() + row * experts;
    int32_t* ids = args.ids.i32() + row * top_k;
    float* weights = args.weights.f32() + row * top_k;
    // Insertion into a short list; equal logits keep the lower index first.
    int64_t count = 0;
    for (int64_t e = 0; e < experts; ++e) {
      if (count == top_k && !(logits[e] > logits[ids[count - 1]])) continue;
      int64_t place = count < top_k ? count++ : count - 1;
      for (; place > 0 && logits[e] > logits[ids[place - 1]]; --place) ids[place] = ids[place - 1];
      ids[place] = int32_t(e);
    }
    // Softmax over all experts, renormalised over the chosen, is the softmax of the chosen.
    float total = 0;
    for (int64_t i = 0; i < top_k; ++i)
      total += weights[i] = std::exp(logits[ids[i]] - logits[ids[0]]);
    for (int64_t i = 0; i < top_k; ++i) weights[i] /= total;
    if (args.scales.empty()) return;
    for (int64_t i = 0; i < top_k; ++i) weights[i] *= args.scales.f32()[ids[i]];
  });
}

void CpuOps::experts(const ExpertsArgs& args) {
  check_shapes(args);
  const int64_t rows = args.x.shape[0], hidden = args.x.shape[1], top_k = args.ids.shape[1];
  const int64_t experts = int64_t(args.experts.size()), pairs = rows * top_k;
  const bool shared = !args.shared.gate.empty();
  const int64_t width = args.experts[0].gate.info.out;
  const int64_t shared_width = shared ? args.shared.gate.info.out : 0;
  const auto multiply = activation_loop(args.activation);
  const int32_t* ids = args.ids.i32();

  // Pairs (row, rank) sorted by expert: a slot each, the slots of an expert side by side.
  std::fill(expert_counts_.begin(), expert_counts_.begin() + experts, 0);
  for (int64_t i = 0; i < pairs; ++i) ++expert_counts_[size_t(ids[i])];
  int32_t active = 0, start = 0;
  for (int64_t e = 0; e < experts; ++e) {
    expert_starts_[size_t(e)] = start;
    start += expert_counts_[size_t(e)];
    if (expert_counts_[size_t(e)] > 0) active_experts_[size_t(active++)] = int32_t(e);
  }
  if (!uniform(args, {active_experts_.data(), size_t(active)})) return Ops::experts(args);
  inputs_.set(args.x.f32(), rows, hidden, hidden);
  inputs_.prepare(args.experts[0].gate.info, loops_, pool_);
  if (shared) inputs_.prepare(args.shared.gate.info, loops_, pool_);
  std::fill(expert_counts_.begin(), expert_counts_.begin() + experts, 0);
  for (int64_t i = 0; i < pairs; ++i) {
    const auto e = size_t(ids[i]);
    slots_[size_t(i)] = expert_starts_[e] + expert_counts_[e]++;
    expert_rows_[size_t(slots_[size_t(i)])] = inputs_.rows()[i / top_k];
  }

  float* activations = args.scratch.f32();                  // [pairs, width]
  float* shared_activations = activations + pairs * width;  // [rows, shared_width]
  const auto block_at = [](const Weight& weight, int64_t block) {
    return weight.values.data + block * cpu_block_bytes(weight.info);
  };
  const auto run_gate_up = [&](const GatedMlp& mlp, const RowInput* inputs, int64_t count,
                               int64_t first, float* out, float* up, const std::byte* next) {
    const int64_t mlp_width = mlp.gate.info.out;
    const int64_t blocks = std::min(kExpertBlocks, block_count(mlp_width) - first);
    const int64_t values = std::min(blocks * kLanes, mlp_width - first * kLanes);
    out += first * kLanes;
    run_tile({.weight = mlp.gate,
              .first = first,
              .blocks = blocks,
              .rows = inputs,
              .row_count = count,
              .out = out,
              .out_stride = mlp_width,
              .next = block_at(mlp.up, first)});
    run_tile({.weight = mlp.up,
              .first = first,
              .blocks = blocks,
              .rows = inputs,
              .row_count = count,
              .out = up,
              .out_stride = values,
              .next = next});
    for (int64_t r = 0; r < count; ++r)
      multiply(out + r * mlp_width, up + r * values, values, out + r * mlp_width);
  };
  const int64_t parts = ceil_div(block_count(width), kExpertBlocks);
  const int64_t shared_parts = ceil_div(block_count(shared_width), kExpertBlocks);
  // The shared expert first: with many rows its items are the longest. Then a part of all experts,
  // then the next one: so a thread meets the same parts again.
  const int64_t items = active * parts + shared_parts;
  const auto expert_of = [&](int64_t item) {
    return size_t(active_experts_[size_t((item - shared_parts) % active)]);
  };
  const auto first_block = [&](int64_t item) {
    return (item < shared_parts ? item : (item - shared_parts) / active) * kExpertBlocks;
  };
  const auto gate_of = [&](int64_t item) -> const std::byte* {
    if (item >= items) return nullptr;
    const GatedMlp& mlp = item < shared_parts ? args.shared : args.experts[expert_of(item)];
    return block_at(mlp.gate, first_block(item));
  };
  pool_.run(items, [&](int64_t item, int thread) {
    float* up = thread_scratch(thread).data();
    const std::byte* next = gate_of(item + 1);
    if (item < shared_parts)
      return run_gate_up(args.shared, inputs_.rows(), rows, first_block(item), shared_activations,
                         up, next);
    const size_t e = expert_of(item);
    const int64_t first_slot = expert_starts_[e];
    run_gate_up(args.experts[e], expert_rows_.data() + first_slot, expert_counts_[e],
                first_block(item), activations + first_slot * width, up, next);
  });

  hidden_inputs_.set(activations, pairs, width, width);
  hidden_inputs_.prepare(args.experts[0].down.info, loops_, pool_);
  if (shared) {
    shared_inputs_.set(shared_activations, rows, shared_width, shared_width);
    shared_inputs_.prepare(args.shared.down.info, loops_, pool_);
  }
  pool_.run(ceil_div(block_count(hidden), kExpertBlocks), [&](int64_t item, int thread) {
    const int64_t first = item * kExpertBlocks;
    const int64_t blocks = std::min(kExpertBlocks, block_count(hidden) - first);
    const int64_t values = std::min(blocks * kLanes, hidden - first * kLanes);
    float* outputs = thread_scratch(thread).data();  // [pairs + rows, values]
    float* shared_outputs = outputs + pairs * values;
    const auto run_down = [&](const Weight& down, const RowInput* inputs, int64_t count, float* out,
                              const Weight* next) {
      run_tile({.weight = down,
                .first = first,
                .blocks = blocks,
                .rows = inputs,
                .row_count = count,
                .out = out,
                .out_stride = values,
                .next = next ? block_at(*next, first) : nullptr});
    };
    for (int32_t i = 0; i < active; ++i) {
      const auto e = size_t(active_experts_[size_t(i)]);
      const int64_t first_slot = expert_starts_[e];
      const Weight* next =
          i + 1 < active ? &args.experts[size_t(active_experts_[size_t(i) + 1])].down : nullptr;
      run_down(args.experts[e].down, hidden_inputs_.rows() + first_slot, expert_counts_[e],
               outputs + first_slot * values, next);
    }
    if (shared) run_down(args.shared.down, shared_inputs_.rows(), rows, shared_outputs, nullptr);
    for (int64_t row = 0; row < rows; ++row) {
      float* out = args.out.f32() + row * hidden + first * kLanes;
      if (!args.add) std::fill_n(out, values, 0.0f);
      for (int64_t rank = 0; rank < top_k; ++rank) {
        const int64_t pair = row * top_k + rank;
        loops_.scaled_add(outputs + slots_[size_t(pair)] * values, args.weights.f32()[pair], values,
                          out);
      }
      if (shared)
        loops_.scaled_add(shared_outputs + row * values, sigmoid(args.shared_gate.f32()[row]),
                          values, out);
    }
  });
}

}  // namespace slip
