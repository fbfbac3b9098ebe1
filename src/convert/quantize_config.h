// What config.json says about quantized weights, in the words of published checkpoints.
#pragma once

#include "base/json.h"
#include "convert/quantize_plan.h"

namespace slip {

// What calibration adds to AutoRound's own keys; empty: rounding to nearest.
struct CalibrationNote {
  int64_t sweeps = 0;
  int64_t samples = 0, length = 0;
  std::string dataset;
};

// AutoRound's `quantization_config`, which is also written as quantization_config.json.
JsonObject autoround_config(const QuantizePlan& plan, const CalibrationNote& note);

// Qwen's, for FP8.
JsonObject fp8_config(const QuantizePlan& plan);

// A note for mixes that neither of them describes; empty if there is no FP8 among INT4.
JsonObject hybrid_note(const QuantizePlan& plan);

}  // namespace slip
