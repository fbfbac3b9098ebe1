// What a measured step would take on a machine with other memory: for boxes that cannot be measured
// here. Always labelled a projection.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace slip {

struct ProjectedMachine {
  std::string name;         // "gb10"
  std::string description;  // "DGX Spark (GB10)"
  double read_bytes_per_second = 0;
};

// The machines that `--project` knows; an empty name is none.
Result<std::optional<ProjectedMachine>> find_projected_machine(const std::string& name);
std::string projected_machine_names();

// Bytes move at that machine's speed; whatever memory does not explain takes as long as it did
// here.
double projected_seconds(double seconds, double bytes, double bytes_per_second_here,
                         const ProjectedMachine& there);

// One line under a table.
std::string describe_projection(const ProjectedMachine& there);

}  // namespace slip
