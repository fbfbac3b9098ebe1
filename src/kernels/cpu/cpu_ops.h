// The fast CPU backend: integer activations against int4 and int8 weights, f32 against all others,
// one thread pool, no allocation in a step.
#pragma once

#include <memory>

#include "base/threads.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/ops.h"

namespace slip {

// Activations of two bytes against integer weights are as good as float; of one byte they cost half
// the products and some accuracy.
std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, Isa isa = available_isas().front(),
                                  int activation_bytes = 2);

}  // namespace slip
