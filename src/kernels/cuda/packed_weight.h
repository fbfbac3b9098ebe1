// Plain weights on their way into the layout of device/weight_tiles.h.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/cuda/device/launch.h"
#include "quant/weight.h"

namespace slip {

// Several threads pack at once, each in a lane of its own: a stream, memory that the GPU reads from
// the host at full speed, and memory for the plain form on the device.
class WeightPacker {
 public:
  WeightPacker();
  ~WeightPacker();
  WeightPacker(const WeightPacker&) = delete;
  WeightPacker& operator=(const WeightPacker&) = delete;

  // From any thread. `plain` may change and `storage` may be read by any kernel, also by one that
  // does not wait for the kernels before it, when this returns.
  Weight pack(const Launcher& launcher, const Weight& plain, std::span<std::byte> storage);

  // Gives the lanes' memory back; packing takes it again.
  void release();

 private:
  class Lane;
  std::unique_ptr<Lane> take_lane();
  void return_lane(std::unique_ptr<Lane> lane);

  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Lane>> free_;
  int lanes_ = 0;  // that exist
};

}  // namespace slip
