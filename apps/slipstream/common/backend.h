// The only chooser of a backend.
#pragma once

#include <memory>
#include <string>

#include "base/threads.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/ops.h"
#include "slipstream/common/model_flags.h"

namespace slip {

// A pool and a backend; the order of the members is the order of their lives.
struct Backend {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Ops> ops;
  Isa isa = Isa::portable;
  std::string description;  // "cpu (AVX2), 2 threads"
};
// The flags have passed their check().
Result<Backend> make_backend(const ModelFlags& flags);

// What --device auto would find.
struct GpuState {
  bool there = false;       // the machine has one, whatever state its driver is in
  std::string description;  // "cuda:0 (NVIDIA H200)"; empty: it cannot be used
  std::string why_not;
};
GpuState look_at_gpu();

}  // namespace slip
