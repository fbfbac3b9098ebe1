#include "slipstream/common/loading_bar.h"

#include <iomanip>
#include <memory>

#include "engine/memory_plan.h"
#include "slipstream/common/numbers.h"
#include "slipstream/common/progress_line.h"

namespace slip {

LoadProgress loading_bar(const std::string& what) {
  const auto line = std::make_shared<ProgressLine>(progress_style());
  return [what, line](uint64_t done, uint64_t total) {
    if (done == total) return line->clear();
    if (!line->is_due()) return;
    constexpr int kWidth = 30;
    const double share = double(done) / double(total);
    std::string bar(size_t(share * kWidth), '#');
    bar.resize(kWidth, '.');
    line->show(cat("loading ", what, " [", bar, "] ", std::setw(3), int(100 * share), " %  ",
                   describe_bytes(done), "  ", fixed(double(done) / 1e9 / line->seconds(), 1),
                   " GB/s"));
  };
}

}  // namespace slip
