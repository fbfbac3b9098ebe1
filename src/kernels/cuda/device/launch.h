// How host code talks to the device: errors, streams, launches.
#pragma once

#include <cuda_runtime.h>

#include "base/check.h"

namespace slip {

// A failed CUDA call is a bug or a broken machine; nothing sensible can follow.
inline void cuda_check(cudaError_t status, SourceLocation where = SourceLocation::current()) {
  if (status != cudaSuccess) [[unlikely]]
    fail_check(cat("CUDA: ", cudaGetErrorString(status)), where);
}

// Steps that decode and verify drafts have no more rows than this. A row's bits then do not depend
// on the rows beside it.
inline constexpr int64_t kFewRows = 16;

// Makes `device` the one that this thread's calls are for. A thread begins with the first, and a
// backend is used from several threads: whatever takes memory or starts work says it before.
inline void use_device(int device) {
  thread_local int used = -1;
  if (used == device) [[likely]]
    return;
  cuda_check(cudaSetDevice(device));
  used = device;
}

// What every launch needs to know.
struct Launcher {
  int device = 0;
  cudaStream_t stream = nullptr;
  int multiprocessors = 0;
  int shared_bytes = 0;  // the most dynamic shared memory that a block may ask for
};

// Launches `kernel` so that it may begin while the one before it ends. Such a kernel calls
// wait_for_inputs() (device/warp.cuh) before it reads what earlier kernels wrote; until then it may
// load weights, which nobody writes.
template <class... Parameters, class... Arguments>
void launch(const Launcher& launcher, dim3 grid, dim3 block, size_t shared,
            void (*kernel)(Parameters...), Arguments&&... arguments) {
  use_device(launcher.device);
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = launcher.stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  cuda_check(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

// More than 48 KB of shared memory must be asked for once per kernel.
template <class Kernel>
void allow_shared(Kernel* kernel, size_t bytes) {
  cuda_check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)));
}

// What is on its way to registers takes room in the first-level cache, which is what shared memory
// leaves of a multiprocessor's memory. Left to itself, a kernel of little shared memory runs with
// the share of the one before it.
template <class Kernel>
void prefer_cache(Kernel* kernel) {
  cuda_check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                  cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxL1));
}

}  // namespace slip
