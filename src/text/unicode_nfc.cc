#include <utf8proc.h>

#include <algorithm>

#include "base/check.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace slip {
namespace {

using Points = std::vector<utf8proc_int32_t>;

// utf8proc sorts marks by swapping neighbours, which is quadratic: a megabyte of marks in the wrong
// order would take hours. Hence its decomposition and composition, but a sort of our own.
void sort_marks(const CharTable& table, Points& points) {
  const auto combining_class = [&table](utf8proc_int32_t point) {
    return table[uint32_t(point)].combining_class();
  };
  for (auto run = points.begin(); run != points.end();) {
    if (combining_class(*run) == 0) {
      ++run;
      continue;
    }
    const auto end =
        std::find_if(run, points.end(), [&](auto point) { return combining_class(point) == 0; });
    std::stable_sort(run, end,
                     [&](auto a, auto b) { return combining_class(a) < combining_class(b); });
    run = end;
  }
}

void append_normalised(const CharTable& table, std::string_view segment, std::string& out) {
  Points points;
  points.reserve(segment.size());
  for (size_t pos = 0; pos < segment.size();) {
    const CodePoint point = decode_valid_utf8(segment.data() + pos);
    utf8proc_int32_t parts[16];
    int boundary_class = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(utf8proc_int32_t(point.value), parts, std::size(parts),
                                UTF8PROC_DECOMPOSE, &boundary_class);
    check(count >= 1 && size_t(count) <= std::size(parts),
          "a canonical decomposition has 1 to 4 "
          "code points, U+",
          std::hex, point.value, " has ", std::dec, count);
    points.insert(points.end(), parts, parts + count);
    pos += point.length;
  }
  sort_marks(table, points);
  const utf8proc_ssize_t length =
      utf8proc_normalize_utf32(points.data(), utf8proc_ssize_t(points.size()),
                               utf8proc_option_t(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  check(length >= 0, "utf8proc refuses decoded code points");
  for (utf8proc_ssize_t i = 0; i < length; ++i) append_utf8(uint32_t(points[size_t(i)]), out);
}

}  // namespace

// Walks the text with the quick check of Unicode's annex 15. Where that is not a clear "yes", the
// segment between the surrounding boundaries is normalised; a boundary is a character that no
// normalisation of what precedes it can touch.
std::string_view to_nfc(std::string_view text, std::string& storage) {
  const CharTable& table = CharTable::get();
  const auto is_boundary = [](CharInfo info) {
    return info.combining_class() == 0 && !info.may_change_in_nfc();
  };
  storage.clear();
  size_t copied = 0;    // text before this is in storage
  size_t boundary = 0;  // the last one seen
  uint8_t last_class = 0;
  for (size_t pos = 0; pos < text.size();) {
    if (static_cast<unsigned char>(text[pos]) < 0x80) {
      boundary = pos++;
      last_class = 0;
      continue;
    }
    const CodePoint point = decode_valid_utf8(text.data() + pos);
    const CharInfo info = table[point.value];
    const uint8_t combining_class = info.combining_class();
    const bool misplaced = combining_class != 0 && combining_class < last_class;
    if (!misplaced && !info.may_change_in_nfc()) {
      if (combining_class == 0) boundary = pos;
      last_class = combining_class;
      pos += point.length;
      continue;
    }
    size_t end = pos + point.length;
    while (end < text.size()) {
      const CodePoint next = decode_valid_utf8(text.data() + end);
      if (is_boundary(table[next.value])) break;
      end += next.length;
    }
    storage.append(text, copied, boundary - copied);
    append_normalised(table, text.substr(boundary, end - boundary), storage);
    copied = boundary = pos = end;
    last_class = 0;
  }
  if (copied == 0) return text;
  storage.append(text, copied);
  return storage;
}

}  // namespace slip
