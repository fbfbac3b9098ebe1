#include "kernels/cuda_ops.h"

namespace slip {

Result<std::unique_ptr<Ops>> make_cuda_ops(int) { return error("this build has no CUDA backend"); }

std::string describe_cuda_device(int) { unreachable("a device of a build without CUDA"); }

double cuda_read_bandwidth(Ops&) { unreachable("ops of a build without CUDA"); }

}  // namespace slip
