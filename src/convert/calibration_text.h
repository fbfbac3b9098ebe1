// What a calibration reads: pieces of a text, or what the model itself writes.
#pragma once

#include <filesystem>

#include "convert/calibrate.h"

namespace slip {

struct SampleSize {
  int64_t samples = 128;  // at least 1
  int64_t length = 512;   // tokens of each, at least 2
};

// Pieces of a file, spread over all of it. A text that is too short gives fewer.
Result<CalibrationText> samples_of_file(const std::filesystem::path& model,
                                        const std::filesystem::path& file, const SampleSize& size);

// Texts that the model writes at temperature 1, so that they are as its training texts were: half
// of them begin as a new text does, half with a token chosen by chance. The same ones every time.
Result<CalibrationText> samples_of_model(const std::filesystem::path& model, const SampleSize& size,
                                         Ops& ops, ThreadPool& pool,
                                         const ConvertProgress& progress);

}  // namespace slip
