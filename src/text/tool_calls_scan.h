// Finding tags, all of which begin with '<', in text that arrives in pieces.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace slip {

using Tags = std::initializer_list<std::string_view>;

struct FoundTag {
  size_t at;             // text.size() if there is none
  std::string_view tag;  // empty if there is none
};
FoundTag find_first_tag(std::string_view text, Tags tags);

// The first position from which the rest of `text` could still become one of the tags.
size_t undecided_from(std::string_view text, Tags tags);

enum class Match { yes, no, undecided };
// Whether `text` starts with one of the tags. At the end of the output nothing is undecided.
Match starts_with_any(std::string_view text, Tags tags, bool final);

inline constexpr size_t kMaxNameBytes = 256;  // of a tool

// "<function=NAME>" for opener "<function=". A name is one line of at most kMaxNameBytes.
struct OpenTag {
  Match match;
  std::string_view name = {};
  size_t length = 0;
};
OpenTag match_open_tag(std::string_view text, std::string_view opener, bool final);

// Follows a list or an object of JSON as it arrives, to tell what stands in its strings.
class JsonStrings {
 public:
  void read(std::string_view text);
  // Whether the next character belongs to a string. Never in what cannot be JSON: no other line
  // break than an escaped one stands in a string.
  bool inside() const { return state_ == State::inside || state_ == State::escaped; }

 private:
  enum class State { before, outside, inside, escaped, no_json };
  static State after(State state, char c);

  State state_ = State::before;
};

size_t leading_blanks(std::string_view text);  // space, tab, \r, \n
size_t trailing_blanks(std::string_view text);

}  // namespace slip
