// Finds stop strings in streamed text and holds back what could still become one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slip {

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops);

  // Text that is now certain not to be part of a stop string. After a match: the text before it,
  // once; then nothing.
  std::string push(std::string_view text);

  // What was held back, when generation ended for another reason.
  std::string finish();

  bool matched() const { return matched_; }
  const std::string& found() const { return found_; }  // the stop string that matched

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string found_;
  bool matched_ = false;
};

}  // namespace slip
