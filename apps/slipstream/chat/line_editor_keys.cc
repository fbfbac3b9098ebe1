#include "slipstream/chat/line_editor_keys.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "text/utf8.h"

namespace slip {
namespace {

constexpr std::string_view kPasteBegin = "\033[200~";
constexpr std::string_view kPasteEnd = "\033[201~";

std::optional<Key> control_key(char byte) {
  switch (byte) {
    case 'A' - 64: return Key::home;
    case 'B' - 64: return Key::left;
    case 'C' - 64: return Key::interrupt;
    case 'D' - 64: return Key::end_of_input;
    case 'E' - 64: return Key::end;
    case 'F' - 64: return Key::right;
    case 'G' - 64: return Key::escape;
    case 'H' - 64: return Key::backspace;
    case 'I' - 64: return Key::tab;
    case 'J' - 64: return Key::enter;
    case 'K' - 64: return Key::erase_to_end;
    case 'L' - 64: return Key::clear_screen;
    case 'M' - 64: return Key::enter;
    case 'N' - 64: return Key::down;
    case 'P' - 64: return Key::up;
    case 'R' - 64: return Key::search;
    case 'T' - 64: return Key::swap;
    case 'U' - 64: return Key::erase_to_start;
    case 'W' - 64: return Key::erase_word_left;
    case 'Y' - 64: return Key::put_back;
    case 'Z' - 64: return Key::suspend;
    case 0x7F: return Key::backspace;
    default: return std::nullopt;
  }
}

// Esc and one more byte: what terminals send for Alt.
std::optional<Key> alt_key(char byte) {
  switch (byte) {
    case 'b': return Key::word_left;
    case 'f': return Key::word_right;
    case 'd': return Key::erase_word_right;
    case 0x7F:
    case '\b': return Key::erase_word_left;
    case '\r':
    case '\n': return Key::newline;
    default: return std::nullopt;
  }
}

// `parameters` as in "1;5" (5: with Ctrl, 3: with Alt), `final` the last byte.
std::optional<Key> sequence_key(std::string_view parameters, char final) {
  const size_t semicolon = parameters.find(';');
  const bool modified =
      semicolon != std::string_view::npos && parameters.substr(semicolon + 1) != "2";
  switch (final) {
    case 'A': return Key::up;
    case 'B': return Key::down;
    case 'C': return modified ? Key::word_right : Key::right;
    case 'D': return modified ? Key::word_left : Key::left;
    case 'H': return Key::home;
    case 'F': return Key::end;
    case '~': break;
    default: return std::nullopt;
  }
  const std::string_view number = parameters.substr(0, semicolon);
  if (number == "1" || number == "7") return Key::home;
  if (number == "4" || number == "8") return Key::end;
  if (number == "3") return modified ? Key::erase_word_right : Key::erase;
  return std::nullopt;
}

// Terminals send \r between pasted lines; other control characters have no business in a message.
std::string clean_paste(const std::string& bytes) {
  std::string text;
  append_lossy_utf8(bytes, text);
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (byte == '\r') {
      if (i + 1 == text.size() || text[i + 1] != '\n') clean += '\n';
    } else if (byte == '\t') {
      clean += "    ";  // the editor counts columns, and a tab has no fixed number of them
    } else if (byte == '\n' || (byte & 0x80) || (byte >= 0x20 && byte != 0x7F)) {
      clean += byte;
    }
  }
  return clean;
}

}  // namespace

std::vector<KeyPress> KeyDecoder::feed(std::string_view bytes) {
  pending_ += bytes;
  std::vector<KeyPress> keys;
  while (!pending_.empty() && take(keys)) {
  }
  return keys;
}

std::vector<KeyPress> KeyDecoder::give_up_waiting() {
  std::vector<KeyPress> keys;
  if (!waiting()) return keys;
  keys.push_back({Key::escape, ""});
  pending_.erase(0, 1);
  while (!pending_.empty() && take(keys)) {
  }
  return keys;
}

bool KeyDecoder::take(std::vector<KeyPress>& keys) {
  if (pasting_) return take_paste(keys);
  const char first = pending_[0];
  if (first == '\033') return take_escape(keys);
  const auto byte = uint8_t(first);  // a char has a sign on some processors
  const bool control = byte < 0x20 || byte == 0x7F;
  if (!control) return take_text(keys);
  if (const auto key = control_key(first)) keys.push_back({*key, ""});
  pending_.erase(0, 1);
  return true;
}

bool KeyDecoder::take_escape(std::vector<KeyPress>& keys) {
  if (pending_.size() < 2) return false;
  const char second = pending_[1];
  if (second != '[' && second != 'O') {
    if (const auto key = alt_key(second)) {
      keys.push_back({*key, ""});
      pending_.erase(0, 2);
    } else {
      pending_.erase(0, 1);  // an unknown Alt key is the key itself
    }
    return true;
  }
  const auto final = std::find_if(pending_.begin() + 2, pending_.end(),
                                  [](char byte) { return byte >= 0x40 && byte <= 0x7E; });
  if (final == pending_.end()) return false;
  if (pending_.starts_with(kPasteBegin)) {
    pending_.erase(0, kPasteBegin.size());
    pasting_ = true;
    pasted_.clear();
    return true;
  }
  const auto begin = pending_.begin() + 2;
  if (const auto key = sequence_key({begin, final}, *final)) keys.push_back({*key, ""});
  pending_.erase(pending_.begin(), final + 1);
  return true;
}

bool KeyDecoder::take_paste(std::vector<KeyPress>& keys) {
  const size_t end = pending_.find(kPasteEnd);
  if (end == std::string::npos) {
    // The end mark itself may be cut.
    const size_t keep = std::min(pending_.size(), kPasteEnd.size() - 1);
    pasted_.append(pending_, 0, pending_.size() - keep);
    pending_.erase(0, pending_.size() - keep);
    return false;
  }
  pasted_.append(pending_, 0, end);
  pending_.erase(0, end + kPasteEnd.size());
  pasting_ = false;
  keys.push_back({Key::paste, clean_paste(pasted_)});
  pasted_.clear();
  return true;
}

bool KeyDecoder::take_text(std::vector<KeyPress>& keys) {
  const auto is_text = [](char byte) { return (byte & 0x80) || (byte >= 0x20 && byte != 0x7F); };
  const auto end = std::find_if_not(pending_.begin(), pending_.end(), is_text);
  const std::string_view run(pending_.data(), size_t(end - pending_.begin()));
  std::string text;
  size_t used = append_finished_utf8(run, text);
  if (end != pending_.end() && used < run.size()) {  // a character that another key cut off
    append_lossy_utf8(run.substr(used), text);
    used = run.size();
  }
  pending_.erase(0, used);
  if (!text.empty()) keys.push_back({Key::text, std::move(text)});
  return used > 0;
}

}  // namespace slip
