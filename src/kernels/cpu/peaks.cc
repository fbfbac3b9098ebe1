#include <algorithm>

#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {
namespace {

// Below this many values a row is looked through before a second thread has begun.
constexpr int64_t kSharedWidth = 4096;

// `right` lies behind `left`.
Peak higher(const Peak& left, const Peak& right) {
  if (right.value > left.value)
    return {right.id, right.value, std::max(left.value, right.runner_up)};
  return {left.id, left.value, std::max(left.runner_up, right.value)};
}

}  // namespace

void CpuOps::peaks(const PeaksArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], width = dims["width"];
  // A part for each thread, as linear() shares outputs: values are where it has left them.
  const int64_t parts = width >= kSharedWidth ? pool_.threads() : 1;
  const auto found = [&](int64_t part) {
    return reinterpret_cast<Peak*>(thread_scratch(int(part)).data());
  };
  check(size_t(3 * rows) <= scratch_values_, "peaks: ", rows, " rows exceed what was reserved");
  pool_.run(parts, [&](int64_t part, int) {
    const int64_t begin = ThreadPool::first_item(width, int(part), int(parts));
    const int64_t end = ThreadPool::first_item(width, int(part) + 1, int(parts));
    for (int64_t row = 0; row < rows; ++row) {
      const RowPeak peak = loops_.peak(args.x.f32() + row * width + begin, end - begin);
      found(part)[row] = {int32_t(begin + peak.index), peak.value, peak.runner_up};
    }
  });
  for (int64_t row = 0; row < rows; ++row) {
    Peak peak = found(0)[row];
    for (int64_t part = 1; part < parts; ++part) peak = higher(peak, found(part)[row]);
    args.put(row, peak);
  }
}

}  // namespace slip
