#include "slipstream/eval/windows.h"

#include <algorithm>

#include "slipstream/common/progress_line.h"
#include "slipstream/eval/eval.h"

namespace slip {

std::vector<std::span<const int32_t>> windows_of(const std::vector<std::vector<int32_t>>& lists,
                                                 int64_t size) {
  std::vector<std::span<const int32_t>> windows;
  for (const std::vector<int32_t>& list : lists)
    for (size_t begin = 0; begin + 1 < list.size(); begin += size_t(size))
      windows.push_back(
          std::span(list).subspan(begin, std::min(size_t(size), list.size() - begin)));
  return windows;
}

Status for_each_window(std::span<const std::span<const int32_t>> windows,
                       FunctionRef<Status(std::span<const int32_t>)> evaluate) {
  ProgressLine line(progress_style());
  for (size_t i = 0; i < windows.size(); ++i) {
    SLIP_TRY_STATUS(evaluate(windows[i]));
    line.count("window", int64_t(i) + 1, int64_t(windows.size()));
  }
  return {};
}

void WindowFlags::add_to(Flags& flags) {
  flags.option("--ids", &ids, "FILE",
               "File of token ids: a JSON list, a list of lists, or what eval tokenize prints");
  flags.option("--window", &window, "N",
               "Tokens per window; every window starts with an empty context");
}

Status WindowFlags::check() const {
  if (ids.empty()) return error("--ids is needed");
  if (window < 2) return error("--window must be at least 2, not ", window);
  return {};
}

Result<std::vector<std::vector<int32_t>>> WindowFlags::read() const {
  SLIP_TRY(std::vector<std::vector<int32_t>> lists, read_id_lists(ids));
  if (windows_of(lists, window).empty()) return error(ids, ": nothing to predict");
  return lists;
}

}  // namespace slip
