#include "kernels/cpu/cpu_ops.h"

#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/cpu_ops_impl.h"
#include "kernels/cpu/delta_net.h"
#include "kernels/cpu/experts.h"

namespace slip {

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, Isa isa) {
  return std::make_unique<CpuOps>(pool, isa);
}

void CpuOps::reserve(const StepLimits& limits) {
  inputs_.reserve(limits.rows, limits.rows * limits.widest_input);
  shared_inputs_.reserve(limits.rows, limits.rows * limits.widest_input);
  const int64_t pairs = limits.rows * limits.top_k;
  hidden_inputs_.reserve(pairs, pairs * limits.expert_width);
  expert_rows_.resize(size_t(pairs));
  slots_.resize(size_t(pairs));
  expert_counts_.resize(size_t(limits.experts));
  expert_starts_.resize(size_t(limits.experts));
  active_experts_.resize(size_t(limits.experts));
  scratch_values_ = size_t(std::max(
      {expert_scratch_values(limits), attention_scratch_values(limits), delta_scratch_values()}));
  scratch_ = Buffer(Device::cpu, scratch_values_ * size_t(pool_.threads()) * sizeof(float));
  partials_ = Buffer(Device::cpu, size_t(attention_partial_values(limits)) * sizeof(float));
}

}  // namespace slip
