#include "slipstream/chat/line_editor.h"

#include <algorithm>

namespace slip {

LineEditor::LineEditor(const LineEditorOptions& options, const LineHistory& history)
    : options_(options), history_(history), entry_(history.entries().size()) {}

LineEditor::Outcome LineEditor::press(const KeyPress& press) {
  if (search_ && search(press)) return Outcome::editing;
  return edit(press);
}

LineToDraw LineEditor::shown() const {
  return {.prompt = search_ ? std::string_view(search_prompt_) : options_.prompt,
          .continuation = options_.continuation,
          .text = text_.text(),
          .cursor = text_.cursor()};
}

LineEditor::Outcome LineEditor::edit(const KeyPress& press) {
  switch (press.key) {
    case Key::text:
    case Key::paste: text_.insert(press.text); break;
    case Key::newline: text_.insert("\n"); break;
    case Key::enter:
      text_.move_to_end();
      if (!options_.is_complete || options_.is_complete(text())) return Outcome::submitted;
      text_.insert("\n");
      break;
    case Key::tab: complete_word(); break;
    case Key::backspace: text_.erase_left(); break;
    case Key::erase: text_.erase_right(); break;
    case Key::left: text_.move_left(); break;
    case Key::right: text_.move_right(); break;
    case Key::up:
      if (!text_.move_up()) show_older();
      break;
    case Key::down:
      if (!text_.move_down()) show_newer();
      break;
    case Key::home: text_.move_to_line_start(); break;
    case Key::end: text_.move_to_line_end(); break;
    case Key::word_left: text_.move_word_left(); break;
    case Key::word_right: text_.move_word_right(); break;
    case Key::erase_word_left: text_.erase_word_left(); break;
    case Key::erase_word_right: text_.erase_word_right(); break;
    case Key::erase_to_end: text_.erase_to_line_end(); break;
    case Key::erase_to_start: text_.erase_to_line_start(); break;
    case Key::put_back: text_.put_back(); break;
    case Key::swap: text_.swap_characters(); break;
    case Key::search:
      search_ = Search{"", history_.entries().size(), text()};
      describe_search();
      break;
    case Key::clear_screen: return Outcome::clear_screen;
    case Key::interrupt: return Outcome::interrupted;
    case Key::suspend: return Outcome::suspend;
    case Key::end_of_input:
      if (text().empty()) return Outcome::end_of_input;
      text_.erase_right();
      break;
    case Key::escape: break;
  }
  return Outcome::editing;
}

void LineEditor::show_older() {
  if (entry_ == 0) return;
  if (entry_ == history_.entries().size()) draft_ = text();
  text_.set(history_.entries()[--entry_]);
}

void LineEditor::show_newer() {
  const size_t count = history_.entries().size();
  if (entry_ == count) return;
  ++entry_;
  text_.set(entry_ == count ? draft_ : history_.entries()[entry_]);
}

bool LineEditor::search(const KeyPress& press) {
  const size_t count = history_.entries().size();
  switch (press.key) {
    case Key::text:
      search_->query += press.text;
      find_older(search_->entry == count ? count : search_->entry + 1);
      return true;
    case Key::backspace: {
      EditedText query;
      query.set(search_->query);
      query.erase_left();
      search_->query = query.text();
      find_older(count);
      return true;
    }
    case Key::search: find_older(search_->entry); return true;
    case Key::escape:
    case Key::interrupt:
      text_.set(search_->before);
      search_.reset();
      return true;
    default:
      if (search_->entry < count) entry_ = search_->entry;
      search_.reset();
      return false;
  }
}

void LineEditor::find_older(size_t before) {
  const std::optional<size_t> found = history_.find_before(before, search_->query);
  if (found && !search_->query.empty()) {
    search_->entry = *found;
    text_.set(history_.entries()[*found]);
  }
  describe_search();
  if (!found) search_prompt_.insert(0, "nothing more: ");
}

void LineEditor::describe_search() { search_prompt_ = "search \"" + search_->query + "\": "; }

void LineEditor::complete_word() {
  if (text().empty()) return;
  std::string common;
  for (const std::string& word : options_.words) {
    if (!word.starts_with(text())) continue;
    if (common.empty()) {
      common = word;
    } else {
      const auto [end, ignored] =
          std::mismatch(common.begin(), common.end(), word.begin(), word.end());
      common.erase(end, common.end());
    }
  }
  if (!common.empty()) text_.set(common);
}

}  // namespace slip
