// A Qwen3.5 checkpoint as one GGUF file, which llama.cpp and its kin load: to compare, and to move.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "convert/hybrid.h"

namespace slip {

struct GgufRequest {
  std::filesystem::path model;  // a folder; or
  std::string shape;            // random weights of a published shape
  std::filesystem::path out;    // must not exist yet
  bool with_mtp = true;         // if the model has one
};

struct GgufResult {
  int64_t tensors = 0;
  uint64_t bytes = 0;          // of tensors
  uint64_t rounded_bytes = 0;  // of those that are not exactly what the checkpoint holds
  bool has_mtp = false;
};

// A killed run leaves nothing under the name of `out`.
Result<GgufResult> export_gguf(const GgufRequest& request, const ConvertProgress& progress);

}  // namespace slip
