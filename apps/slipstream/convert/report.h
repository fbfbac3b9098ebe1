// What a conversion has cost, measured on a text: perplexity, distance from the source, drafts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "convert/hybrid.h"
#include "slipstream/common/backend.h"

namespace slip {

// What it is measured on: the beginning of a file, in windows that are read from nothing. Read
// before the conversion, which nobody should wait for in vain.
struct QualityText {
  static constexpr int64_t kWindowTokens = 1024, kMostWindows = 8;

  static Result<QualityText> read(const std::filesystem::path& file,
                                  const std::filesystem::path& model);
  int64_t tokens() const;

  std::vector<std::vector<int32_t>> windows;
};

struct QualityReport {
  double perplexity = 0, source_perplexity = 0, perplexity_change = 0;
  double kl = 0;         // mean, in nats
  double agreement = 0;  // share of positions with the same first choice
  // Shares of first drafts that are what the model itself would choose; none without MTP.
  std::optional<double> drafts{}, source_drafts{};

  std::string text() const;  // a few lines for people
  JsonObject json() const;
};

// `progress` counts tokens read.
Result<QualityReport> measure_quality(const QualityText& text, const std::filesystem::path& source,
                                      const std::filesystem::path& made, const Backend& backend,
                                      const ConvertProgress& progress);

}  // namespace slip
