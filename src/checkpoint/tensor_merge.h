// Which copy of each tensor is used, and what to tell about it; the rules are at the top of
// checkpoint.h.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/index.h"

namespace slip {

struct MergedTensors {
  std::vector<StoredTensor> tensors;  // sorted by name, each name once
  std::vector<std::string> notes;
};

// `found` is every tensor of every file, file by file in order of their names. `index` may be null.
// A tensor of the index that no file holds is an error.
Result<MergedTensors> merge_tensors(std::vector<StoredTensor> found, const SafetensorsIndex* index);

}  // namespace slip
