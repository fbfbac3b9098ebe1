#include "loading_bar.h"

#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "engine/memory_plan.h"

namespace slip {

LoadProgress loading_bar(const std::string& what) {
  if (!::isatty(STDERR_FILENO)) return {};
  return [what, clock = Stopwatch(), shown = -1.0](uint64_t done, uint64_t total) mutable {
    constexpr double kPatience = 0.5, kInterval = 0.1;
    constexpr int kWidth = 30;
    const double now = clock.seconds();
    const bool last = done == total;
    if (now < kPatience || (!last && now - shown < kInterval)) return;
    shown = now;
    const double share = total ? double(done) / double(total) : 1;
    std::string bar(size_t(share * kWidth), '#');
    bar.resize(kWidth, '.');
    std::fprintf(stderr, "\rloading %s [%s] %3.0f %%  %s  %.1f GB/s ", what.c_str(), bar.c_str(),
                 100 * share, describe_bytes(done).c_str(), double(done) / 1e9 / now);
    if (last) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  };
}

}  // namespace slip
