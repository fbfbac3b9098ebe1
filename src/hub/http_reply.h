// The head of an HTTP/1.1 reply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slip {

struct HttpReplyHead {
  int status = 0;
  int minor_version = 1;  // of HTTP/1.x
  std::vector<std::pair<std::string, std::string>> headers;

  // The first of that name, whatever its case; empty if there is none.
  std::string_view header(std::string_view name) const;
  bool has_header_word(std::string_view name, std::string_view word) const;

  // `text` runs from the status line to the empty line.
  static Result<HttpReplyHead> parse(std::string_view text);
};

// "bytes 0-99/1234"
struct ContentRange {
  uint64_t begin = 0, end = 0;  // end: one behind the last
  uint64_t total = 0;

  static std::optional<ContentRange> parse(std::string_view text);
};

}  // namespace slip
