#include "kernels/cpu/cpu_ops.h"

#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/cpu_ops_impl.h"
#include "kernels/cpu/delta_net.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/kv_codes.h"

namespace slip {

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, Isa isa, int activation_bytes) {
  return std::make_unique<CpuOps>(pool, loops_for(isa, activation_bytes));
}

namespace {

// Whole vectors, so that the part of every thread is aligned.
size_t thread_scratch_values(const StepLimits& limits) {
  const int64_t values = std::max({expert_scratch_values(limits), attention_scratch_values(limits),
                                   delta_scratch_values(), encode_scratch_values(limits.head_dim)});
  return size_t((values + kLanes - 1) / kLanes * kLanes);
}

}  // namespace

size_t CpuOps::scratch_bytes(const StepLimits& limits) const {
  const int64_t pairs = limits.rows * limits.top_k;
  return 2 * RowInputs::reserved_bytes(limits.rows, limits.rows * limits.widest_input) +
         RowInputs::reserved_bytes(pairs, pairs * limits.expert_width) +
         size_t(pairs) * (sizeof(RowInput) + sizeof(int32_t)) +
         size_t(3 * limits.experts) * sizeof(int32_t) +
         thread_scratch_values(limits) * size_t(pool_.threads()) * sizeof(float) +
         size_t(attention_partial_values(limits)) * sizeof(float);
}

void CpuOps::reserve(const StepLimits& wanted) {
  reserved_ = largest(reserved_, wanted);  // models may share a backend
  const StepLimits& limits = reserved_;
  const int64_t pairs = limits.rows * limits.top_k;
  inputs_.reserve(limits.rows, limits.rows * limits.widest_input);
  shared_inputs_.reserve(limits.rows, limits.rows * limits.widest_input);
  hidden_inputs_.reserve(pairs, pairs * limits.expert_width);
  expert_rows_.resize(size_t(pairs));
  slots_.resize(size_t(pairs));
  expert_counts_.resize(size_t(limits.experts));
  expert_starts_.resize(size_t(limits.experts));
  active_experts_.resize(size_t(limits.experts));
  scratch_values_ = thread_scratch_values(limits);
  scratch_ = Buffer(host_memory(), scratch_values_ * size_t(pool_.threads()) * sizeof(float));
  partials_ = Buffer(host_memory(), size_t(attention_partial_values(limits)) * sizeof(float));
}

}  // namespace slip
