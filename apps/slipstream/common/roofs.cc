#include "slipstream/common/roofs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "kernels/cpu/simd/loops.h"
#include "kernels/cuda_ops.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

// Far beyond the last-level cache of most machines, and beyond that of two cores.
constexpr size_t kProbeBytes = size_t{512} << 20;
constexpr size_t kGlanceBytes = size_t{128} << 20;

// Each thread reads slices of its own; repeated until the time is used, the best pass counts.
double read_rate(ThreadPool& pool, const Loops& loops, size_t bytes, double seconds) {
  const Buffer buffer(host_memory(), bytes, Pages::huge);
  constexpr int64_t kSlices = 64;
  const size_t slice = bytes / kSlices;
  pool.run(kSlices, [&](int64_t i, int) {  // touch the pages: untouched ones all read one zero page
    std::memset(buffer.data() + size_t(i) * slice, 0x11, slice);
  });
  std::atomic<uint64_t> sink{0};
  double best = 0;
  const Stopwatch total;
  do {
    const Stopwatch pass;
    pool.run(kSlices, [&](int64_t i, int) {
      sink += loops.read_bytes(buffer.data() + size_t(i) * slice, slice);
    });
    best = std::max(best, double(bytes) / pass.seconds());
  } while (total.seconds() < seconds);
  return best;
}

double product_rate(ThreadPool& pool, const Loops& loops, double seconds) {
  constexpr int64_t kRounds = 20000;
  double best = 0;
  const Stopwatch total;
  do {
    std::atomic<int64_t> products{0};
    const Stopwatch pass;
    pool.run(int64_t(pool.threads()) * 4,
             [&](int64_t, int) { products += loops.int8_products(kRounds); });
    best = std::max(best, double(products.load()) / pass.seconds());
  } while (total.seconds() < seconds);
  return best;
}

bool on_gpu(const Backend& backend) { return !backend.ops->memory().on_host(); }

}  // namespace

Roofs measure_roofs(const Backend& backend, double seconds) {
  if (on_gpu(backend)) return {cuda_read_bandwidth(*backend.ops), INFINITY};
  return cpu_roofs(*backend.pool, backend.isa, seconds);
}

Roofs cpu_roofs(ThreadPool& pool, Isa isa, double seconds) {
  const Loops& loops = loops_for(isa);
  Roofs roofs;
  roofs.int8_products_per_second = product_rate(pool, loops, seconds / 4);
  roofs.read_bytes_per_second = read_rate(pool, loops, kProbeBytes, seconds * 3 / 4);
  return roofs;
}

Roofs better_of(const Roofs& before, const Roofs& after) {
  return {std::max(before.read_bytes_per_second, after.read_bytes_per_second),
          std::max(before.int8_products_per_second, after.int8_products_per_second)};
}

double glance_at_bandwidth(const Backend& backend) {
  if (on_gpu(backend)) return cuda_read_bandwidth(*backend.ops);
  return read_rate(*backend.pool, loops_for(backend.isa), kGlanceBytes, 0.02);
}

}  // namespace slip
