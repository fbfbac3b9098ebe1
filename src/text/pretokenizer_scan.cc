#include "text/pretokenizer_scan.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace slip {
namespace {

// What the alternatives of the patterns ask of a character.
enum class Kind : uint8_t { kWord, kNumber, kSpace, kOther, kEnd };

struct Char {
  Kind kind;
  uint32_t value;
  size_t length;
};

// kMarksInWords: [\p{L}\p{M}] makes words (Qwen3.5); else \p{L} does, and marks are "other".
template <bool kMarksInWords>
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), table_(CharTable::get()) {}

  size_t piece_end(size_t begin) const {
    const Char first = at(begin);
    const size_t second_pos = begin + first.length;
    switch (first.kind) {
      case Kind::kWord: return run_end(second_pos, Kind::kWord);
      case Kind::kNumber: return second_pos;
      case Kind::kOther: {
        if (first.value == '\'')
          if (const size_t length = contraction_length(second_pos)) return second_pos + length;
        if (at(second_pos).kind == Kind::kWord) return run_end(second_pos, Kind::kWord);
        return newlines_end(run_end(second_pos, Kind::kOther));
      }
      case Kind::kSpace: {
        const Kind second = at(second_pos).kind;
        if (second == Kind::kWord && !is_newline(first.value))
          return run_end(second_pos, Kind::kWord);
        if (second == Kind::kOther && first.value == ' ')
          return newlines_end(run_end(second_pos, Kind::kOther));
        return space_end(begin);
      }
      case Kind::kEnd: break;
    }
    return text_.size();
  }

 private:
  static bool is_newline(uint32_t value) { return value == '\n' || value == '\r'; }

  static Kind kind_of(CharClass char_class) {
    switch (char_class) {
      case CharClass::kLetter: return Kind::kWord;
      case CharClass::kMark: return kMarksInWords ? Kind::kWord : Kind::kOther;
      case CharClass::kNumber: return Kind::kNumber;
      case CharClass::kSpace: return Kind::kSpace;
      case CharClass::kOther: return Kind::kOther;
    }
    return Kind::kOther;
  }

  Char at(size_t pos) const {
    if (pos == text_.size()) return {Kind::kEnd, 0, 0};
    const CodePoint point = decode_valid_utf8(text_.data() + pos);
    return {kind_of(table_[point.value].char_class()), point.value, point.length};
  }

  size_t run_end(size_t pos, Kind kind) const {
    for (Char next = at(pos); next.kind == kind; next = at(pos)) pos += next.length;
    return pos;
  }

  size_t newlines_end(size_t pos) const {
    while (pos < text_.size() && (text_[pos] == '\n' || text_[pos] == '\r')) ++pos;
    return pos;
  }

  // (?i:s|t|re|ve|m|ll|d) at `pos`: its length, 0 without a match. Case folding makes U+017F, the
  // long s, an s; no other character beyond ASCII folds to these letters.
  size_t contraction_length(size_t pos) const {
    if (text_.substr(pos, 2) == "\xC5\xBF") return 2;
    const auto lower = [&](size_t i) {
      return i < text_.size() ? char(static_cast<unsigned char>(text_[i]) | 0x20) : '\0';
    };
    const char second = lower(pos + 1);
    switch (lower(pos)) {
      case 's':
      case 't':
      case 'm':
      case 'd': return 1;
      case 'r':
      case 'v': return second == 'e' ? 2 : 0;
      case 'l': return second == 'l' ? 2 : 0;
      default: return 0;
    }
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+ at a space: up to the last line break of the run; without one, all
  // but the last space, which belongs to the word that follows; a run at the end of text whole.
  size_t space_end(size_t begin) const {
    size_t after_newline = begin;
    size_t last = begin;
    size_t pos = begin;
    for (Char next = at(pos); next.kind == Kind::kSpace; next = at(pos)) {
      last = pos;
      pos += next.length;
      if (is_newline(next.value)) after_newline = pos;
    }
    if (after_newline > begin) return after_newline;
    return pos == text_.size() || last == begin ? pos : last;
  }

  std::string_view text_;
  const CharTable& table_;
};

}  // namespace

size_t qwen2_piece_end(std::string_view text, size_t begin) {
  return Scanner<false>(text).piece_end(begin);
}

size_t qwen35_piece_end(std::string_view text, size_t begin) {
  return Scanner<true>(text).piece_end(begin);
}

}  // namespace slip
