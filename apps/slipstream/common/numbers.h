// Figures for tables and charts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace slip {

// "3.14" of 3.14159 and 2 digits.
std::string fixed(double value, int digits);

// 1234567 -> "1,234,567"
std::string with_commas(int64_t number);

// A rate with three digits or more: "0.52", "12.3", "1,234".
std::string describe_rate(double rate);

// The upper one of two in the middle; 0 of none.
double median(std::vector<double> values);

// The least value that at least `share` of the values do not exceed. Needs one value.
double quantile(std::vector<double> values, double share);

}  // namespace slip
