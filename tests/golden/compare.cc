#include "tests/golden/compare.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"

namespace slip {

void Differences::add(const LogitRows& found, const GoldenFile& golden, const std::string& prefix,
                      const std::vector<float>& gaps, float least_gap) {
  const std::vector<int32_t> ids = golden.ints(prefix + "top_ids");
  const std::vector<float> logits = golden.floats(prefix + "top_logits");
  const std::vector<int64_t> shape = golden.shape(prefix + "top_ids");
  ASSERT_LE(found.rows(), shape[0]) << prefix;
  for (int64_t row = 0; row < found.rows(); ++row) {
    if (!gaps.empty() && gaps[size_t(row)] <= least_gap) continue;
    const std::span<const float> values = found.row(row);
    ++rows_;
    same_ += argmax(values) == ids[size_t(row * shape[1])];
    for (int64_t i = row * shape[1]; i < (row + 1) * shape[1]; ++i)
      add(values[size_t(ids[size_t(i)])] - logits[size_t(i)]);
  }
}

double Differences::largest() const { return all_.empty() ? 0 : *std::ranges::max_element(all_); }

double Differences::rms() const {
  const double sum = std::inner_product(all_.begin(), all_.end(), all_.begin(), 0.0);
  return all_.empty() ? 0 : std::sqrt(sum / double(all_.size()));
}

double Differences::percentile(double share) const {
  if (all_.empty()) return 0;
  std::vector<float> sorted = all_;
  const auto place = sorted.begin() + int64_t(share * double(sorted.size() - 1));
  std::ranges::nth_element(sorted, place);
  return *place;
}

std::string Differences::describe() const {
  return cat("largest ", largest(), ", rms ", rms(), ", 99 % below ", percentile(0.99),
             ", same choice in ", same_, " of ", rows_, " rows");
}

void Differences::expect_within(Arithmetic arithmetic) const {
  switch (arithmetic) {
    case Arithmetic::float32: EXPECT_LE(largest(), 1e-3) << describe(); return;
    case Arithmetic::int16_activations:
      EXPECT_LE(rms(), 0.05) << describe();
      EXPECT_LE(percentile(0.99), 0.05) << describe();
      EXPECT_GE(same_choice(), 0.995) << describe();
      return;
    case Arithmetic::f16_activations:
      EXPECT_LE(rms(), 0.05) << describe();
      EXPECT_LE(percentile(0.99), 0.15) << describe();
      EXPECT_GE(same_choice(), 0.995) << describe();
      return;
  }
}

void expect_same_until_undecided(const std::vector<int32_t>& found,
                                 const std::vector<int32_t>& golden,
                                 const std::vector<float>& margins,
                                 const std::vector<float>& router_gaps) {
  ASSERT_LE(found.size(), golden.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (margins[i] < 2e-3 || (!router_gaps.empty() && router_gaps[i] < 1e-5)) return;
    ASSERT_EQ(found[i], golden[i]) << "step " << i << ", margin " << margins[i];
  }
}

}  // namespace slip
