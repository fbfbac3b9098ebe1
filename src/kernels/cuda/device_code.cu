#include <cuda_runtime.h>

#include "kernels/cuda/device_code.h"

namespace slip {
namespace {

// All kernels are compiled for the same devices, so any one tells.
__global__ void any_kernel() {}

}  // namespace

bool has_code_for_device() {
  cudaFuncAttributes attributes{};
  const bool found =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(any_kernel)) == cudaSuccess;
  cudaGetLastError();  // or the next call would report it
  return found;
}

}  // namespace slip
