// From the bytes a terminal sends to keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slip {

enum class Key {
  text,   // one or more characters
  paste,  // pasted, line breaks included
  enter,
  newline,  // Alt-Enter: a line break in the text
  tab,
  backspace,
  erase,  // Del
  left,
  right,
  up,
  down,
  home,
  end,
  word_left,
  word_right,
  erase_word_left,
  erase_word_right,
  erase_to_end,
  erase_to_start,
  put_back,  // Ctrl-Y: what was erased last
  swap,      // Ctrl-T: the characters around the cursor
  clear_screen,
  search,
  interrupt,
  end_of_input,
  suspend,
  escape,
};

struct KeyPress {
  Key key;
  std::string text;  // of Key::text and Key::paste; valid UTF-8

  bool operator==(const KeyPress&) const = default;
};

// Bytes may be cut anywhere.
class KeyDecoder {
 public:
  std::vector<KeyPress> feed(std::string_view bytes);

  // Whether an escape sequence has begun. When nothing follows within a moment, it was the key Esc.
  bool waiting() const { return !pasting_ && pending_.starts_with('\033'); }
  std::vector<KeyPress> give_up_waiting();

 private:
  // Takes one key off pending_; false when more bytes are needed.
  bool take(std::vector<KeyPress>& keys);
  bool take_escape(std::vector<KeyPress>& keys);
  bool take_paste(std::vector<KeyPress>& keys);
  bool take_text(std::vector<KeyPress>& keys);

  std::string pending_;
  std::string pasted_;
  bool pasting_ = false;
};

}  // namespace slip
