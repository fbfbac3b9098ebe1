// Texts that are evaluated window by window, each from an empty state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "slipstream/common/flags.h"

namespace slip {

// The pieces, of at most `size` ids. A piece of one id predicts nothing and is left out.
std::vector<std::span<const int32_t>> windows_of(const std::vector<std::vector<int32_t>>& lists,
                                                 int64_t size);

// Calls `evaluate` for each, until it fails, and draws how far it is.
Status for_each_window(std::span<const std::span<const int32_t>> windows,
                       FunctionRef<Status(std::span<const int32_t>)> evaluate);

// Token ids from a file, and how long a window is.
inline constexpr const char* kWindowAdvice = "--window sets the length of a window";

struct WindowFlags {
  std::string ids;
  int64_t window = 1024;

  void add_to(Flags& flags);
  Status check() const;

  // After check(): lists of ids that make at least one window.
  Result<std::vector<std::vector<int32_t>>> read() const;
};

}  // namespace slip
