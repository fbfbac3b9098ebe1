#include "text/utf8.h"

#include <cstring>

namespace slip {
namespace {

enum class PartKind { kValid, kInvalid, kUnfinished };

struct Part {
  size_t length;
  PartKind kind;
};

// The valid character or maximal invalid part at the start of `bytes`, which is not empty.
Part first_part(std::string_view bytes) {
  const auto byte = [bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, PartKind::kValid};
  if (lead < 0xC2 || lead > 0xF4) return {1, PartKind::kInvalid};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte alone excludes overlong forms, surrogates and values above U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {i, PartKind::kUnfinished};
    const bool fits = i == 1 ? byte(1) >= low && byte(1) <= high : (byte(i) & 0xC0) == 0x80;
    if (!fits) return {i, PartKind::kInvalid};
  }
  return {length, PartKind::kValid};
}

// Most text is ASCII; eight bytes per step keep the check far from the profile.
size_t skip_ascii(std::string_view bytes, size_t pos) {
  while (pos + 8 <= bytes.size()) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + pos, 8);
    if (word & 0x8080808080808080u) break;
    pos += 8;
  }
  while (pos < bytes.size() && static_cast<unsigned char>(bytes[pos]) < 0x80) ++pos;
  return pos;
}

// Where the valid text that starts at `pos` ends.
size_t skip_valid(std::string_view bytes, size_t pos) {
  while ((pos = skip_ascii(bytes, pos)) < bytes.size()) {
    const Part part = first_part(bytes.substr(pos));
    if (part.kind != PartKind::kValid) break;
    pos += part.length;
  }
  return pos;
}

}  // namespace

void append_utf8(uint32_t code_point, std::string& out) {
  const auto put = [&out](uint32_t byte) { out.push_back(char(static_cast<unsigned char>(byte))); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xE0 | code_point >> 12);
    } else {
      put(0xF0 | code_point >> 18);
      put(0x80 | (code_point >> 12 & 0x3F));
    }
    put(0x80 | (code_point >> 6 & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

bool is_valid_utf8(std::string_view bytes) { return skip_valid(bytes, 0) == bytes.size(); }

void append_lossy_utf8(std::string_view bytes, std::string& out) {
  const size_t used = append_finished_utf8(bytes, out);
  if (used < bytes.size()) out += kReplacementCharacter;
}

size_t append_finished_utf8(std::string_view bytes, std::string& out) {
  size_t pos = 0;
  while (true) {
    const size_t valid_end = skip_valid(bytes, pos);
    out.append(bytes, pos, valid_end - pos);
    pos = valid_end;
    if (pos == bytes.size()) return pos;
    const Part part = first_part(bytes.substr(pos));
    if (part.kind == PartKind::kUnfinished) return pos;
    out += kReplacementCharacter;
    pos += part.length;
  }
}

std::string printable_line(std::string_view bytes, size_t longest) {
  std::string valid;
  append_lossy_utf8(bytes.substr(0, longest), valid);
  std::string line;
  for (size_t pos = 0; pos < valid.size();) {
    const CodePoint point = decode_valid_utf8(valid.data() + pos);
    const bool steers = point.value < 0x20 || (point.value >= 0x7F && point.value < 0xA0);
    line += steers ? "?" : std::string_view(valid).substr(pos, point.length);
    pos += point.length;
  }
  return line;
}

}  // namespace slip
