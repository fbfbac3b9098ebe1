// How far logits are from goldens, and the tolerances of shared/goldens/README.md.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {

// Which rows count and how far they may be off.
enum class Arithmetic {
  float32,  // 1e-3 on every logit where no router is undecided
  // 16-bit activations against integer weights: far inside what the goldens allow for int8 (rms
  // 0.4, 99th percentile 1.6, same choice in 96.5 %). Single tokens may be routed to another
  // expert.
  int16_activations,  // rms 0.05, 99th percentile 0.05, same choice in 99.5 %
  // f16 activations, as tensor cores take them; the goldens allow bf16 rms 0.2 and 0.8.
  f16_activations  // rms 0.05, 99th percentile 0.15, same choice in 99.5 %
};

// Differences of the golden's best logits, over all rows added.
class Differences {
 public:
  // `golden` has <prefix>top_ids and <prefix>top_logits [n, k]; rows with a smaller router gap are
  // left out (`gaps` may be empty).
  void add(const LogitRows& found, const GoldenFile& golden, const std::string& prefix,
           const std::vector<float>& gaps = {}, float least_gap = 0);
  void add(float difference) { all_.push_back(std::abs(difference)); }

  double largest() const;
  double rms() const;
  double percentile(double share) const;
  double same_choice() const { return rows_ == 0 ? 1 : double(same_) / double(rows_); }
  int64_t rows() const { return rows_; }

  // "largest ..., rms ..., 99 % below ..., same choice in ... of ... rows"
  std::string describe() const;

  void expect_within(Arithmetic arithmetic) const;

 private:
  std::vector<float> all_;
  int64_t rows_ = 0, same_ = 0;
};

// Tokens equal up to the first step whose margin (or router gap, if given) says that rounding may
// decide.
void expect_same_until_undecided(const std::vector<int32_t>& found,
                                 const std::vector<int32_t>& golden,
                                 const std::vector<float>& margins,
                                 const std::vector<float>& router_gaps = {});

}  // namespace slip
