// Writes a planned quantization, tensor by tensor: memory holds a few matrices at a time, and a run
// that was killed goes on with the files that were complete.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "base/threads.h"
#include "convert/hybrid.h"
#include "convert/quantize_plan.h"
#include "quant/weight.h"

namespace slip {

// Codes that somebody has found better than the nearest ones: asked for every int4 matrix.
class Int4Codes {
 public:
  virtual ~Int4Codes() = default;
  // Fills a plain int4 weight; false: round to nearest.
  virtual Result<bool> fill(const std::string& module, const Weight& plain) = 0;
};

struct QuantizeJob {
  const Checkpoint& source;
  const QuantizePlan& plan;
  JsonObject quantization_config;
  JsonObject hybrid_note;  // may be empty
  std::filesystem::path out;
  Int4Codes* codes = nullptr;  // null: round to nearest
};

struct QuantizeResult {
  bool was_there = false;  // the folder holds it already; nothing was written
  uint64_t written = 0;
};

// Whether the folder holds the result already; a failure if it is there and holds something else.
// For those whose codes take long to find: it does not look at them.
Result<bool> is_quantized(const QuantizeJob& job);

// `progress` counts bytes of the source.
Result<QuantizeResult> quantize_checkpoint(const QuantizeJob& job, ThreadPool& pool,
                                           const ConvertProgress& progress);

}  // namespace slip
