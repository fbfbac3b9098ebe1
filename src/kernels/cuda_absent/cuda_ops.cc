#include "kernels/cuda_ops.h"

namespace slip {

Result<std::unique_ptr<Ops>> make_cuda_ops(int device) {
  return error("--device cuda:", device,
               ": this build has no CUDA backend; it runs on the CPU with --device cpu");
}

}  // namespace slip
