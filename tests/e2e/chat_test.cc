// The chat, in a terminal of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/files.h"
#include "tests/e2e/process.h"

namespace slip::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

class Chat : public testing::Test {
 protected:
  TemporaryFolder home_;
};

TEST_F(Chat, AnswersAndLeaves) {
  TerminalSession terminal({"run", "--greedy"}, home_.path());
  ASSERT_TRUE(terminal.wait_for(">>> "));
  EXPECT_FALSE(terminal.is_restored());
  terminal.type("What is the capital of France?" + kEnter);
  ASSERT_TRUE(terminal.wait_for("Paris")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("tok/s"));
  ASSERT_TRUE(terminal.wait_for(">>> "));
  EXPECT_THAT(terminal.screen(), HasSubstr("\033[2m"));  // thoughts are dimmed
  terminal.type("/bye" + kEnter);
  EXPECT_EQ(terminal.wait_for_exit(), 0);
  EXPECT_TRUE(terminal.is_restored());
  const Result<std::string> history = read_text_file(home_.path() / "slipstream" / "history");
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history.value(), "What is the capital of France?\n/bye\n");
}

// The template drops thoughts of earlier turns, so the second prompt does not begin with the first
// one and its answer.
TEST_F(Chat, ReadsWhatWasSaidBeforeOnce) {
  TerminalSession terminal({"run", "--greedy"}, home_.path());
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("What is the capital of France?" + kEnter);
  ASSERT_TRUE(terminal.wait_for("tok/s"));
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("reused")));
  terminal.type("And of Italy?" + kEnter);
  ASSERT_TRUE(terminal.wait_for("reused)")) << terminal.screen();
  terminal.type("/bye" + kEnter);
  EXPECT_EQ(terminal.wait_for_exit(), 0);
}

TEST_F(Chat, ControlCStopsTheAnswerAndNotTheProgram) {
  TerminalSession terminal({"run", "--greedy", "--ignore-eos"}, home_.path());
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("Tell me a story." + kEnter);
  ASSERT_TRUE(terminal.wait_for("there"));
  terminal.type(kCtrlC);
  ASSERT_TRUE(terminal.wait_for("Stopped.")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("/think off" + kEnter);
  ASSERT_TRUE(terminal.wait_for("Thinking is off"));
  terminal.type(kCtrlD);
  EXPECT_EQ(terminal.wait_for_exit(), 0);
  EXPECT_TRUE(terminal.is_restored());
}

TEST_F(Chat, ControlCAtThePromptClearsTheLineAndTwiceLeaves) {
  TerminalSession terminal({"run"}, home_.path());
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("half a quest");
  ASSERT_TRUE(terminal.wait_for("quest"));
  terminal.type(kCtrlC);
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlC);
  ASSERT_TRUE(terminal.wait_for("again"));
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlC);
  EXPECT_EQ(terminal.wait_for_exit(), 0);
  EXPECT_TRUE(terminal.is_restored());
}

TEST_F(Chat, SavesTheConversation) {
  TerminalSession terminal({"run", "--greedy", "--system", "Be brief."}, home_.path());
  ASSERT_TRUE(terminal.wait_for(">>> "));
  const std::string json = (home_.path() / "chat.json").string();
  const std::string markdown = (home_.path() / "chat.md").string();
  terminal.type("/save " + json + kEnter);
  ASSERT_TRUE(terminal.wait_for("nothing to save"));
  // Two lines, and the answer is waited for by typing ahead.
  terminal.type("\"\"\"What is the capital" + kEnter + "of France?\"\"\"" + kEnter);
  terminal.type("/save " + json + kEnter + "/save " + markdown + kEnter);
  ASSERT_TRUE(terminal.wait_for("chat.md.")) << terminal.screen();
  terminal.type("/clear" + kEnter + "/sytem x" + kEnter);
  ASSERT_TRUE(terminal.wait_for("did you mean /system?")) << terminal.screen();
  terminal.type("/quit" + kEnter);
  EXPECT_EQ(terminal.wait_for_exit(), 0);
  const Result<std::string> text = read_text_file(json);
  ASSERT_TRUE(text.ok());
  const Result<Json> parsed = parse_json(text.value(), json);
  ASSERT_TRUE(parsed.ok());
  const JsonArray& messages = parsed.value().at("messages").as_array();
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].at("content").as_string(), "Be brief.");
  EXPECT_EQ(messages[1].at("content").as_string(), "What is the capital\nof France?");
  EXPECT_EQ(messages[2].at("role").as_string(), "assistant");
  EXPECT_THAT(read_text_file(markdown).value(), HasSubstr("## You\n\nWhat is the capital\nof"));
}

TEST_F(Chat, AFullContextDoesNotEndTheChat) {
  TerminalSession terminal({"run", "--greedy", "-c", "64", "--think", "off"}, home_.path());
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("Tell me a story." + kEnter);
  ASSERT_TRUE(terminal.wait_for("the context is full (64 tokens)")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("And another one?" + kEnter);
  ASSERT_TRUE(terminal.wait_for("the context holds 64")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("/clear" + kEnter + "Who?" + kEnter);
  ASSERT_TRUE(terminal.wait_for("forgotten"));
  ASSERT_TRUE(terminal.wait_for("tok/s")) << terminal.screen();
  terminal.type(kCtrlD);
  EXPECT_EQ(terminal.wait_for_exit(), 0);
}

TEST_F(Chat, TheTerminalIsRestoredWhenASignalEndsTheProgram) {
  for (const int number : {SIGTERM, SIGHUP, SIGSEGV}) {
    TerminalSession terminal({"run"}, home_.path());
    ASSERT_TRUE(terminal.wait_for(">>> "));
    terminal.send_signal(number);
    EXPECT_EQ(terminal.wait_for_exit(), 128 + number);
    EXPECT_TRUE(terminal.is_restored()) << number;
  }
}

TEST_F(Chat, DumbTerminalsGetNoEscapeSequences) {
  TerminalSession terminal({"run", "--greedy"}, home_.path(), {"TERM=dumb"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("What is the capital of France?\n");
  ASSERT_TRUE(terminal.wait_for("</think>"));
  ASSERT_TRUE(terminal.wait_for("Paris"));
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("/bye\n");
  EXPECT_EQ(terminal.wait_for_exit(), 0);
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("\033")));
}

TEST_F(Chat, NoColorIsRespected) {
  TerminalSession terminal({"run", "What is the capital of France?", "--greedy"}, home_.path(),
                           {"TERM=xterm", "NO_COLOR=1"});
  EXPECT_EQ(terminal.wait_for_exit(), 0);
  EXPECT_THAT(terminal.screen(), HasSubstr("Paris"));
  EXPECT_THAT(terminal.screen(), HasSubstr("tok/s"));
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("\033[2m")));
}

TEST_F(Chat, HiddenThoughtsLeaveNoTrace) {
  TerminalSession terminal(
      {"run", "What is the capital of France?", "--greedy", "-q", "--hide-thinking"}, home_.path());
  EXPECT_EQ(terminal.wait_for_exit(), 0);
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("fact")));
  EXPECT_THAT(terminal.screen(), HasSubstr("\r\033[KParis"));
}

}  // namespace
}  // namespace slip::e2e
