#include "text/byte_level.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace slip {
namespace {

constexpr int kCharacters = 0x144;  // the map's characters are U+0021 to U+0143
constexpr int16_t kNoByte = -1;

// Printable Latin-1 stands for itself; the other 68 bytes take U+0100, U+0101, ... in order.
constexpr std::array<int16_t, kCharacters> make_bytes_of_characters() {
  std::array<int16_t, kCharacters> bytes{};
  bytes.fill(kNoByte);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    bytes[size_t(printable ? byte : next++)] = int16_t(byte);
  }
  return bytes;
}

constexpr std::array<int16_t, kCharacters> kByteOfCharacter = make_bytes_of_characters();

}  // namespace

bool append_byte_level(std::string_view token, std::string& out) {
  const size_t before = out.size();
  for (size_t pos = 0; pos < token.size();) {
    const CodePoint point = decode_valid_utf8(token.data() + pos);
    const int16_t byte = point.value < kCharacters ? kByteOfCharacter[point.value] : kNoByte;
    if (byte == kNoByte) {
      out.resize(before);
      return false;
    }
    out.push_back(char(byte));
    pos += point.length;
  }
  return true;
}

}  // namespace slip
