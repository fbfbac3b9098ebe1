#include "slipstream/common/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/check.h"

namespace slip {

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string with_commas(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool border = i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0;
    if (border) text += ',';
    text += digits[i];
  }
  return text;
}

std::string describe_rate(double rate) {
  if (rate >= 100) return with_commas(std::llround(rate));
  return fixed(rate, rate >= 10 ? 1 : 2);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double quantile(std::vector<double> values, double share) {
  check(!values.empty(), "quantile of nothing");
  const double rank = std::ceil(share * double(values.size()));
  const auto index = std::clamp<int64_t>(int64_t(rank) - 1, 0, int64_t(values.size()) - 1);
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return values[size_t(index)];
}

}  // namespace slip
