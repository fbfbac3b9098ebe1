// Codes for int4 that keep what matrices put out on a text, found layer by layer: the inputs of a
// layer come from the model with all layers before it rounded already, so that it can make good
// some of what they do. Takes the memory that the rounded model takes to run, and the products of
// one layer's inputs.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "convert/quantize.h"
#include "kernels/ops.h"

namespace slip {

struct CalibrationText {
  std::vector<std::vector<int32_t>> samples;  // token ids, each read from an empty state
  std::string origin;                         // for config.json

  int64_t longest() const;
  int64_t tokens() const;
};

struct CalibrateRequest {
  const Checkpoint& source;  // 16 bits
  const QuantizePlan& plan;
  std::filesystem::path rounded;  // the plan carried out by rounding to nearest
  std::filesystem::path work;     // a folder for the codes of finished layers; may hold some
  const CalibrationText& text;
};

// What became of a layer: squared errors of its outputs, relative to the outputs.
struct LayerErrors {
  std::string layer;  // "model.language_model.layers.0"
  int64_t matrices = 0;
  double before = 0, after = 0;  // of all matrices together, rounding to nearest and now
};

struct CalibrateProgress {
  size_t layer = 0, layers = 0;
  int64_t tokens_done = 0, tokens = 0;  // of the layer's text
};
// False stops.
using OnCalibration = std::function<bool(const CalibrateProgress&)>;

// The codes of all matrices, from the files in `work`; writes those that are missing.
class CalibratedCodes : public Int4Codes {
 public:
  static Result<std::unique_ptr<CalibratedCodes>> make(const CalibrateRequest& request, Ops& ops,
                                                       ThreadPool& pool,
                                                       const OnCalibration& progress);

  Result<bool> fill(const std::string& module, const Weight& plain) override;
  // Of the layers that were calibrated now, not of those that were there.
  const std::vector<LayerErrors>& errors() const { return errors_; }

 private:
  CalibratedCodes() = default;

  std::vector<MappedFile> files_;
  std::map<std::string, std::span<const std::byte>> codes_, scales_;  // by module
  std::vector<LayerErrors> errors_;

  friend class Calibrator;
};

// Where a calibration for the checkpoint `out` keeps what it has found, until that is there.
// `purpose` says what it depends on.
Result<OutputFolder> calibration_folder(const std::filesystem::path& out,
                                        const std::string& purpose);

// Of the tokens, to tell one text from another.
std::string fingerprint(const CalibrationText& text);

// How often every code may be looked at.
inline constexpr int kCalibrationSweeps = 6;

}  // namespace slip
