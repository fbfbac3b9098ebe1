// The reference backend: plain loops, double sums, any shape. Slow on purpose; it is the
// specification that every fast kernel is tested against.
#pragma once

#include <memory>

#include "kernels/ops.h"

namespace slip {

std::unique_ptr<Ops> make_ref_ops();

}  // namespace slip
