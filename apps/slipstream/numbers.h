// Figures for tables and charts.
#pragma once

#include <string>
#include <vector>

namespace slip {

// "3.14" of 3.14159 and 2 digits.
std::string fixed(double value, int digits);

// The upper one of two in the middle; 0 of none.
double median(std::vector<double> values);

}  // namespace slip
