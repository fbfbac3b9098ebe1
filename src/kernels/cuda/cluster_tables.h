// The clusters of a head as kernels find them: by number.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/device/weight_tiles.h"
#include "tensor/memory.h"

namespace slip {

class ClusterTables {
 public:
  // [clusters]. The first call for a head may not be recorded; calling it in the step before is
  // enough.
  const DeviceWeight* of(std::span<const Weight> clusters, Memory& memory);

 private:
  struct Free {
    void operator()(DeviceWeight* device) const { cudaFree(device); }
  };
  struct Table {
    std::vector<DeviceWeight> host;  // what it was made from may have gone
    std::unique_ptr<DeviceWeight, Free> device;
  };
  std::map<const Weight*, Table> tables_;
};

}  // namespace slip
