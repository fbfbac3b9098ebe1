#include "slipstream/bench/projection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace slip {
namespace {

// Of its nominal 273 GB/s, owners measure 233.
const std::array kMachines = {
    ProjectedMachine{"gb10", "DGX Spark (GB10)", 233e9},
};

}  // namespace

std::string projected_machine_names() {
  std::vector<std::string> names;
  names.reserve(std::size(kMachines));
  for (const ProjectedMachine& machine : kMachines) names.push_back(machine.name);
  return join(names, ", ");
}

Result<std::optional<ProjectedMachine>> find_projected_machine(const std::string& name) {
  if (name.empty()) return std::optional<ProjectedMachine>();
  for (const ProjectedMachine& machine : kMachines)
    if (machine.name == name) return std::optional(machine);
  return error("--project knows ", projected_machine_names(), ", not ", name);
}

double projected_seconds(double seconds, double bytes, double bytes_per_second_here,
                         const ProjectedMachine& there) {
  const double unexplained = std::max(0.0, seconds - bytes / bytes_per_second_here);
  return unexplained + bytes / there.read_bytes_per_second;
}

std::string describe_projection(const ProjectedMachine& there) {
  return cat("projection, not a measurement: ", there.description, " with memory that reads ",
             std::lround(there.read_bytes_per_second / 1e9),
             " GB/s; what memory does not explain is taken to last as long as here");
}

}  // namespace slip
