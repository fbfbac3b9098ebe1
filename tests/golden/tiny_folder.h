// The random checkpoints of a megabyte: some are in the repository, the others lie beside it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>

#include "tests/golden/golden_file.h"

namespace slip {

inline std::filesystem::path tiny_folder(const std::string& name) {
  const std::filesystem::path own = golden_folder() / "tiny" / name;
  return std::filesystem::exists(own) ? own : shared_folder() / "goldens/tiny" / name;
}

inline bool has_tiny(const std::string& name) {
  return std::filesystem::exists(tiny_folder(name) / "config.json");
}
inline constexpr const char* kTinyAbsent =
    "NOT TESTED: shared/goldens/tiny, which has this checkpoint, is absent";

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(double(a[i]) - double(b[i]));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

}  // namespace slip
