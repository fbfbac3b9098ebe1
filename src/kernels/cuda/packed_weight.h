// Plain weights on their way into the layout of device/weight_tiles.h.
#pragma once

#include <mutex>
#include <span>

#include "kernels/cuda/device/launch.h"
#include "quant/weight.h"

namespace slip {

class WeightPacker {
 public:
  WeightPacker() = default;
  ~WeightPacker();
  WeightPacker(const WeightPacker&) = delete;
  WeightPacker& operator=(const WeightPacker&) = delete;

  // From any thread, one at a time. `plain` may change and `storage` may be read by any kernel,
  // also by one that does not wait for the kernels before it, when this returns.
  Weight pack(const Launcher& launcher, const Weight& plain, std::span<std::byte> storage);

 private:
  void pack_slabs(const Launcher& launcher, const Weight& plain, std::byte* storage);
  std::byte* staging(size_t bytes);

  std::mutex mutex_;
  std::byte* staging_ = nullptr;
  size_t staging_bytes_ = 0;
};

}  // namespace slip
