// MTP tensors that a checkpoint lacks, or that only its index lacks. A reader that believes the
// index alone then drafts with nothing, or with garbage.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "convert/tensor_source.h"

namespace slip {

struct MtpResult {
  enum class Done {
    nothing,     // all MTP tensors are there and in the index
    registered,  // they were there; the index names them now
    copied,      // they came from the other checkpoint
  };
  Done done = Done::nothing;
  int64_t tensors = 0;  // MTP tensors of the checkpoint as it is now
  uint64_t bytes = 0;   // of those that were copied
};

struct MtpRequest {
  std::optional<std::filesystem::path> from;  // not needed where the tensors are there already
  std::filesystem::path to;                   // changed in place
  bool dry_run = false;
};

// Where MTP tensors lie in published INT4 checkpoints.
inline constexpr std::string_view kMtpFile = "model_extra_tensors.safetensors";

// The checkpoint is whole at every moment: a new file comes before the index that names it, and
// both appear at once. A layer that would be incomplete is an error, and nothing is written.
Result<MtpResult> add_mtp(const MtpRequest& request);

}  // namespace slip
