// UTF-8: walking valid text, and reading bytes that may not be valid. Each maximal invalid part
// becomes one U+FFFD, as WHATWG, Rust's lossy conversion and Python's "replace" do it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace slip {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

struct CodePoint {
  uint32_t value;
  uint32_t length;  // bytes, 1 to 4
};

// The code point that starts at `at`, in text known to be valid UTF-8.
inline CodePoint decode_valid_utf8(const char* at) {
  const auto byte = [at](int i) { return uint32_t(static_cast<unsigned char>(at[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

// Where the code point that ends before `end` starts, in text known to be valid; end must not be 0.
inline size_t previous_code_point(std::string_view text, size_t end) {
  do --end;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

// Of text known to be valid.
inline size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  return count;
}

void append_utf8(uint32_t code_point, std::string& out);

bool is_valid_utf8(std::string_view bytes);

// Appends `bytes` with each maximal invalid part replaced; what is appended is valid.
void append_lossy_utf8(std::string_view bytes, std::string& out);

// The same for a stream: stops before an unfinished character at the end, at most three bytes, that
// later bytes could complete. Returns how many bytes were used.
size_t append_finished_utf8(std::string_view bytes, std::string& out);

// What a stranger wrote, fit for a log or a terminal: valid, at most `longest` bytes of it, with
// '?' for what would begin a new line or steer a terminal.
std::string printable_line(std::string_view bytes, size_t longest);

}  // namespace slip
