// Random weights of real shapes, made in memory: full-size speed without full-size files.
#pragma once

#include <functional>

#include "weights/weight_source.h"

namespace slip {

class SyntheticSource : public WeightSource {
 public:
  // Chooses the format of a module by its name, as the published hybrid files do.
  using FormatRule = std::function<WeightFormat(const std::string& module)>;

  explicit SyntheticSource(FormatRule rule) : rule_(std::move(rule)) {}

  Result<WeightInfo> describe(const std::string& module, int64_t out, int64_t in) override;
  Status read(const std::string& module, const Weight& plain) override;
  Status read_rows(const MatrixRows& rows, const Weight& plain) override;
  Status read_vector(const std::string& name, const Shape& shape, std::span<float> values) override;
  std::optional<std::string> missing_matrix(const std::string&) const override { return {}; }
  bool has_vector(const std::string&) const override { return true; }
  std::optional<uint64_t> noise_seed(const std::string& module) const override {
    return std::hash<std::string>{}(module);
  }
  Status check_all_used() override { return {}; }

 private:
  FormatRule rule_;
};

// The forms that a model is published in, or converted to.
enum class Release : uint8_t { int4, fp8, bf16 };
// What most of its weights are in.
WeightFormat format_of(Release release);

// INT4 (group 128) for attention, delta net and experts, the rest BF16, as AutoRound files are.
WeightFormat autoround_format(const std::string& module);
// Qwen's own FP8 files also have shared experts in it, and what drafts.
SyntheticSource::FormatRule qwen_formats(Release release);

}  // namespace slip
