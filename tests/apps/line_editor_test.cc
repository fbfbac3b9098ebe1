#include "slipstream/chat/line_editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "slipstream/chat/input.h"
#include "text/utf8.h"

namespace slip {
namespace {

using testing::ElementsAre;

std::vector<KeyPress> decode(std::string_view bytes) {
  KeyDecoder decoder;
  return decoder.feed(bytes);
}

// Presses what a terminal would send; returns the last outcome.
LineEditor::Outcome press(LineEditor& editor, std::string_view bytes) {
  LineEditor::Outcome outcome = LineEditor::Outcome::editing;
  for (const KeyPress& key : decode(bytes)) outcome = editor.press(key);
  return outcome;
}

// "te|xt": the text with the cursor in it.
std::string shown(const LineEditor& editor) {
  std::string text(editor.shown().text);
  return text.insert(editor.shown().cursor, 1, '|');
}

TEST(KeyDecoder, KnowsWhatTerminalsSend) {
  EXPECT_THAT(decode("ab\r"), ElementsAre(KeyPress{Key::text, "ab"}, KeyPress{Key::enter, ""}));
  EXPECT_THAT(
      decode("\033[A\033OB\033[1;5C\033[1;3D\033[3~\033[H\033[4~"),
      ElementsAre(KeyPress{Key::up, ""}, KeyPress{Key::down, ""}, KeyPress{Key::word_right, ""},
                  KeyPress{Key::word_left, ""}, KeyPress{Key::erase, ""}, KeyPress{Key::home, ""},
                  KeyPress{Key::end, ""}));
  EXPECT_THAT(decode("\033b\033f\033\r\x7f\x17"),
              ElementsAre(KeyPress{Key::word_left, ""}, KeyPress{Key::word_right, ""},
                          KeyPress{Key::newline, ""}, KeyPress{Key::backspace, ""},
                          KeyPress{Key::erase_word_left, ""}));
  EXPECT_THAT(decode("\033[99;99u"), ElementsAre());  // unknown sequences do nothing
}

TEST(KeyDecoder, PastesAreOneKey) {
  EXPECT_THAT(decode("\033[200~one\rtwo\r\n\x03three\tx\033[201~!"),
              ElementsAre(KeyPress{Key::paste, "one\ntwo\nthree    x"}, KeyPress{Key::text, "!"}));
}

TEST(KeyDecoder, EscAloneIsDecidedByTime) {
  KeyDecoder decoder;
  EXPECT_THAT(decoder.feed("\033"), ElementsAre());
  EXPECT_TRUE(decoder.waiting());
  EXPECT_THAT(decoder.give_up_waiting(), ElementsAre(KeyPress{Key::escape, ""}));
  EXPECT_FALSE(decoder.waiting());
}

TEST(KeyDecoder, BytesMayBeCutAnywhere) {
  const std::string bytes = "aé日\033[1;5D\033[200~x日\ry\033[201~👩\x0b\033OA\xff\rz\r";
  const auto join = [](const std::vector<KeyPress>& keys, std::vector<KeyPress>& all) {
    for (const KeyPress& key : keys) {
      if (key.key == Key::text && !all.empty() && all.back().key == Key::text) {
        all.back().text += key.text;
      } else {
        all.push_back(key);
      }
    }
  };
  std::vector<KeyPress> whole;
  join(decode(bytes), whole);
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    KeyDecoder decoder;
    std::vector<KeyPress> parts;
    join(decoder.feed(bytes.substr(0, cut)), parts);
    join(decoder.feed(bytes.substr(cut)), parts);
    EXPECT_EQ(parts, whole) << cut;
  }
}

class Editor : public testing::Test {
 protected:
  LineEditorOptions options_{.is_complete = is_complete_message, .words = command_words()};
  LineHistory history_{""};
};

TEST_F(Editor, EditsInTheMiddle) {
  LineEditor editor(options_, history_);
  press(editor, "hello world\x01");
  EXPECT_EQ(shown(editor), "|hello world");
  press(editor, "\033f");
  EXPECT_EQ(shown(editor), "hello| world");
  press(editor, ",\x05!\033b\033b");
  EXPECT_EQ(shown(editor), "|hello, world!");
  press(editor, "\033[C\033[3~\x7f");
  EXPECT_EQ(shown(editor), "|llo, world!");
  press(editor, "\x05\x17");
  EXPECT_EQ(shown(editor), "llo, |");
  press(editor, "\x15\x19\x19");
  EXPECT_EQ(shown(editor), "llo, llo, |");
  press(editor, "\x01\x0b");
  EXPECT_EQ(shown(editor), "|");
  press(editor, "ab\x14");
  EXPECT_EQ(shown(editor), "ba|");
}

TEST_F(Editor, MovesByWholeCharacters) {
  LineEditor editor(options_, history_);
  press(editor, "é日👩‍👩‍👧e\xCC\x81");  // the last two are one letter
  press(editor, "\x7f");
  EXPECT_EQ(shown(editor), "é日👩‍👩‍👧|");
  press(editor, "\033[D");
  EXPECT_EQ(shown(editor), "é日|👩‍👩‍👧");
  press(editor, "\033[3~\033[D\033[D\033[D");
  EXPECT_EQ(shown(editor), "|é日");
}

TEST_F(Editor, EnterSendsOnlyWholeMessages) {
  LineEditor editor(options_, history_);
  EXPECT_EQ(press(editor, "one \\\r"), LineEditor::Outcome::editing);
  EXPECT_EQ(press(editor, "two\r"), LineEditor::Outcome::submitted);
  EXPECT_EQ(editor.text(), "one \\\ntwo");
  LineEditor quoted(options_, history_);
  EXPECT_EQ(press(quoted, "\"\"\"\rone\r\rtwo\r"), LineEditor::Outcome::editing);
  EXPECT_EQ(press(quoted, "\"\"\"\r"), LineEditor::Outcome::submitted);
  EXPECT_EQ(message_text(quoted.text()), "one\n\ntwo");
}

TEST_F(Editor, UpAndDownMoveInTheTextFirst) {
  history_.add("first");
  history_.add("second");
  LineEditor editor(options_, history_);
  press(editor, "ab\033\rcd\033[A");
  EXPECT_EQ(shown(editor), "ab|\ncd");
  press(editor, "\033[A");
  EXPECT_EQ(shown(editor), "second|");
  press(editor, "\033[A\033[A");
  EXPECT_EQ(shown(editor), "first|");
  press(editor, "\033[B\033[B");
  EXPECT_EQ(shown(editor), "ab\ncd|");
}

TEST_F(Editor, SearchesTheHistory) {
  history_.add("tell me a story");
  history_.add("what is HTML?");
  history_.add("tell me a joke");
  LineEditor editor(options_, history_);
  press(editor, "draft\x12tell");
  EXPECT_EQ(editor.text(), "tell me a joke");
  press(editor, "\x12");
  EXPECT_EQ(editor.text(), "tell me a story");
  press(editor, "\x07");
  EXPECT_EQ(editor.text(), "draft");
  press(editor, "\x12html\x05");
  EXPECT_EQ(shown(editor), "what is HTML?|");
}

TEST_F(Editor, TabCompletesCommands) {
  LineEditor editor(options_, history_);
  press(editor, "/th\t");
  EXPECT_EQ(editor.text(), "/think");
  LineEditor common(options_, history_);
  press(common, "/s\t");
  EXPECT_EQ(common.text(), "/s");  // /save, /stats, /system
  LineEditor other(options_, history_);
  press(other, "hello\t");
  EXPECT_EQ(other.text(), "hello");
}

TEST_F(Editor, ControlKeysReportWhatTheyMean) {
  LineEditor editor(options_, history_);
  EXPECT_EQ(press(editor, "\x04"), LineEditor::Outcome::end_of_input);
  EXPECT_EQ(press(editor, "x\x01\x04"), LineEditor::Outcome::editing);
  EXPECT_EQ(editor.text(), "");
  EXPECT_EQ(press(editor, "\x03"), LineEditor::Outcome::interrupted);
  EXPECT_EQ(press(editor, "\x0c"), LineEditor::Outcome::clear_screen);
  EXPECT_EQ(press(editor, "\x1a"), LineEditor::Outcome::suspend);
}

TEST_F(Editor, SurvivesRandomKeys) {
  history_.add("two\nlines");
  std::mt19937 random(7);
  const std::vector<std::string> keys = {"a",
                                         "é",
                                         "日",
                                         "👩‍👩‍👧",
                                         "\xff",
                                         " ",
                                         "\n",
                                         "\\",
                                         "\"\"\"",
                                         "\x7f",
                                         "\x01",
                                         "\x05",
                                         "\x0b",
                                         "\x15",
                                         "\x17",
                                         "\x14",
                                         "\033[A",
                                         "\033[B",
                                         "\033[C",
                                         "\033[D",
                                         "\033b",
                                         "\033f",
                                         "\033d",
                                         "\033[3~",
                                         "\x12",
                                         "\x07",
                                         "\033\r",
                                         "\x19",
                                         "\033[200~p\rq\033[201~"};
  for (int round = 0; round < 200; ++round) {
    LineEditor editor(options_, history_);
    LineScreen screen;
    for (int i = 0; i < 100; ++i) {
      press(editor, keys[random() % keys.size()]);
      const LineToDraw line = editor.shown();
      ASSERT_TRUE(is_valid_utf8(line.text));
      ASSERT_LE(line.cursor, line.text.size());
      const LineLayout layout = lay_out(line, 12);
      ASSERT_LT(layout.cursor_row, int(layout.rows.size()));
      screen.draw(line, {.columns = 12, .rows = 5});
    }
  }
}

TEST(LineLayout, BreaksAtTheEdgeAndAtLineBreaks) {
  const LineToDraw line{
      .prompt = ">>> ", .continuation = "... ", .text = "abcd\nx日本", .cursor = 4};
  const LineLayout layout = lay_out(line, 8);
  // The first row is full, but a line break follows: the cursor waits behind the last letter.
  EXPECT_THAT(layout.rows, ElementsAre(">>> abcd", "... x日", "本"));
  EXPECT_EQ(layout.cursor_row, 0);
  EXPECT_EQ(layout.cursor_column, 8);
  const LineLayout full =
      lay_out({.prompt = "> ", .continuation = "", .text = "abcdef", .cursor = 6}, 8);
  EXPECT_THAT(full.rows, ElementsAre("> abcdef", ""));
  EXPECT_EQ(full.cursor_row, 1);
  EXPECT_EQ(full.cursor_column, 0);
}

TEST(LineScreen, ShowsAWindowOfTallTexts) {
  LineScreen screen;
  std::string text;
  for (int i = 0; i < 30; ++i) text += cat("line", i, "\n");
  const std::string drawn =
      screen.draw({.prompt = "> ", .continuation = "", .text = text, .cursor = text.size()},
                  {.columns = 40, .rows = 10});
  EXPECT_THAT(drawn, testing::HasSubstr("line29"));
  EXPECT_THAT(drawn, testing::Not(testing::HasSubstr("line5\r")));
}

TEST(LineHistory, IsKeptInAFile) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "slip-history-test";
  std::filesystem::remove_all(folder);
  const std::filesystem::path file = folder / "deeper" / "history";
  {
    LineHistory history(file);
    history.add("one");
    history.add("one");
    history.add("two\nlines \\ and \\n");
  }
  EXPECT_THAT(LineHistory(file).entries(), ElementsAre("one", "two\nlines \\ and \\n"));
  const auto permissions = std::filesystem::status(file).permissions();
  EXPECT_EQ(permissions & std::filesystem::perms::others_read, std::filesystem::perms::none);
  std::filesystem::remove_all(folder);
}

TEST(LineHistory, StaysShortAndPrivate) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "slip-long-history-test";
  std::filesystem::remove_all(folder);
  const std::filesystem::path file = folder / "history";
  {
    LineHistory history(file);
    for (int i = 0; i < 5; ++i) history.add(std::string(1 << 20, char('a' + i)));
    history.add("last");
  }
  // A few long entries are as much too much as many short ones; the newest stay.
  const LineHistory history(file);
  ASSERT_FALSE(history.entries().empty());
  EXPECT_EQ(history.entries().back(), "last");
  EXPECT_EQ(history.entries().front(), std::string(1 << 20, 'e'));
  EXPECT_LT(std::filesystem::file_size(file), 4u << 20);
  const auto permissions = std::filesystem::status(file).permissions();
  EXPECT_EQ(permissions & (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
            std::filesystem::perms::none);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace slip
