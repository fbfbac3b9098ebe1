#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slipstream/chat/conversation.h"
#include "slipstream/chat/input.h"

namespace slip {
namespace {

using testing::HasSubstr;

TEST(ChatInput, MessagesLoseTheirMarks) {
  EXPECT_EQ(message_text("  hello \n"), "hello");
  EXPECT_EQ(message_text("one \\\ntwo"), "one \ntwo");
  EXPECT_EQ(message_text("a \\ b"), "a \\ b");
  EXPECT_EQ(message_text("\"\"\"\none\n  two\n\"\"\""), "one\n  two");
  EXPECT_EQ(message_text("\"\"\"one\"\"\""), "one");
  EXPECT_FALSE(is_complete_message("\"\"\""));
  EXPECT_FALSE(is_complete_message("\"\"\"\""));
  EXPECT_TRUE(is_complete_message("\"\"\"\"\"\""));
  EXPECT_FALSE(is_complete_message("more \\"));
  EXPECT_TRUE(is_complete_message(""));
}

TEST(ChatInput, CommandsHaveArguments) {
  const Result<TypedCommand> system = parse_command("/system  You are  a fox. ");
  ASSERT_TRUE(system.ok());
  EXPECT_EQ(system.value().command, Command::system);
  EXPECT_EQ(system.value().argument, "You are  a fox.");
  for (const char* leave : {"/bye", "/exit", "/quit"})
    EXPECT_EQ(parse_command(leave).value().command, Command::leave);
  EXPECT_THAT(parse_command("/claer").failure().message, HasSubstr("did you mean /clear?"));
  EXPECT_THAT(parse_command("/etc/passwd").failure().message, HasSubstr("/help"));
}

TEST(Conversation, IsSavedAsJsonAndMarkdown) {
  Conversation conversation;
  conversation.set_system("Be brief.");
  conversation.add_user("Hi");
  conversation.add({{"role", "assistant"}, {"content", "Hello!"}, {"reasoning_content", "a\nb"}});
  EXPECT_EQ(conversation.messages().size(), 3u);
  EXPECT_EQ(
      conversation.as_markdown("minnow"),
      "# Chat with minnow\n\n## System\n\nBe brief.\n\n## You\n\nHi\n\n## minnow\n\n> a\n> b\n\n"
      "Hello!\n");
  const Result<Json> parsed = parse_json(conversation.as_json("minnow"), "chat");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().at("messages").as_array(), conversation.messages());
  conversation.add_user("Again?");
  conversation.take_back();
  EXPECT_EQ(conversation.messages().size(), 3u);
}

}  // namespace
}  // namespace slip
