// The CUDA backend's entry point. A build without CUDA links kernels/cuda_absent, which says so;
// callers are the same in both.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/ops.h"

namespace slip {

Result<std::unique_ptr<Ops>> make_cuda_ops(int device);

}  // namespace slip
