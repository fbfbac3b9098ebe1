#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

namespace slip {
namespace {

// The longest end of `text` that begins `stop`, short of all of it.
size_t partial_match(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length)
    if (text.ends_with(stop.substr(0, length))) return length;
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopStrings::push(std::string_view text) {
  if (matched_) return {};
  if (stops_.empty()) return std::string(text);
  held_ += text;
  // The match that ends first, and of those the longest: what it is does not depend on how the text
  // was cut, since that one is complete first.
  size_t begin = 0, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    if (at + stop.size() < end || (at + stop.size() == end && at < begin)) {
      begin = at;
      end = at + stop.size();
    }
  }
  if (end != std::string::npos) {
    matched_ = true;
    found_ = held_.substr(begin, end - begin);
    held_.resize(begin);
    return std::exchange(held_, {});
  }
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, partial_match(held_, stop));
  // Do not cut a character in two either: step back to the start of one.
  size_t cut = held_.size() - keep;
  while (cut > 0 && cut < held_.size() && (uint8_t(held_[cut]) & 0xc0) == 0x80) --cut;
  std::string certain = held_.substr(0, cut);
  held_.erase(0, cut);
  return certain;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace slip
