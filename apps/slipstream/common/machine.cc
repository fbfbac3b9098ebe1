#include "slipstream/common/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "base/threads.h"

namespace slip {
namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

JsonObject describe_machine() {
  utsname system{};
  ::uname(&system);
  const auto memory = int64_t(::sysconf(_SC_PHYS_PAGES)) * int64_t(::sysconf(_SC_PAGESIZE));
  return {{"cpu", cpu_model()},
          {"architecture", system.machine},
          {"cores", available_threads()},
          {"memory_bytes", memory},
          {"kernel", cat(system.sysname, " ", system.release)}};
}

JsonObject describe_machine(const Backend& backend, const Roofs& roofs) {
  JsonObject machine = describe_machine();
  machine["threads"] = backend.pool->threads();
  machine["instruction_set"] = name_of(backend.isa);
  machine["read_bandwidth_gb_per_s"] = roofs.read_bytes_per_second / 1e9;
  if (std::isfinite(roofs.int8_products_per_second))
    machine["int8_products_per_s"] = roofs.int8_products_per_second;
  return machine;
}

}  // namespace slip
