// The fast CPU backend: int8 activations against int4 and int8 weights, f32 activations against all
// others, one thread pool, no allocation in a step.
#pragma once

#include <memory>

#include "base/threads.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/ops.h"

namespace slip {

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, Isa isa = available_isas().front());

}  // namespace slip
