#include "hub/http_reply.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/ascii.h"

namespace slip {
namespace {

// Takes one line off the front; "\n" alone ends one too.
std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::string_view HttpReplyHead::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (equal_ignoring_case(key, name)) return value;
  return {};
}

bool HttpReplyHead::has_header_word(std::string_view name, std::string_view word) const {
  for (const auto& [key, value] : headers) {
    if (!equal_ignoring_case(key, name)) continue;
    for (std::string_view rest = value; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      if (equal_ignoring_case(trimmed(rest.substr(0, comma)), word)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

Result<HttpReplyHead> HttpReplyHead::parse(std::string_view text) {
  HttpReplyHead head;
  const std::string_view first = next_line(text);
  const bool known = first.starts_with("HTTP/1.") && first.size() >= 12 &&
                     (first[7] == '0' || first[7] == '1') && first[8] == ' ';
  const std::optional<uint64_t> status = known ? parse_decimal(first.substr(9, 3)) : std::nullopt;
  if (!status || *status < 100)
    return error("expected an HTTP/1.1 reply, found \"", first.substr(0, 60), "\"");
  head.minor_version = first[7] - '0';
  head.status = int(*status);
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.empty()) break;
    const size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos)
      return error("expected a header, found \"", line.substr(0, 60), "\"");
    head.headers.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
  }
  return head;
}

std::optional<ContentRange> ContentRange::parse(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  const size_t dash = text.find('-'), slash = text.find('/');
  if (!text.starts_with(kUnit) || dash == std::string_view::npos ||
      slash == std::string_view::npos || slash < dash)
    return std::nullopt;
  const auto begin = parse_decimal(text.substr(kUnit.size(), dash - kUnit.size()));
  const auto last = parse_decimal(text.substr(dash + 1, slash - dash - 1));
  const auto total = parse_decimal(text.substr(slash + 1));
  if (!begin || !last || !total || *last < *begin || *last >= *total) return std::nullopt;
  return ContentRange{*begin, *last + 1, *total};
}

}  // namespace slip
