// The CUDA backend's entry point. A build without CUDA links kernels/cuda_absent, which says so;
// callers are the same in both.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kernels/ops.h"

namespace slip {

Result<std::unique_ptr<Ops>> make_cuda_ops(int device);

// "cuda:0 (NVIDIA H200)"
std::string describe_cuda_device(int device);

// Bytes per second that the device of these ops reads from its memory, measured now.
double cuda_read_bandwidth(Ops& ops);

}  // namespace slip
