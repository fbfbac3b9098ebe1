// Stop strings of chats: they end an answer in its content, and are nothing in thoughts and calls.
#include <gmock/gmock.h>

#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using ::testing::ElementsAre;

class ApiStops : public ApiTest {
 protected:
  std::shared_ptr<RecordedReply> chat(const std::string& members) {
    return post("/v1/chat/completions",
                R"({"messages":[{"role":"user","content":"Hi"}],)" + members + "}");
  }
  static std::vector<std::string> deltas(const RecordedReply& reply) {
    std::vector<std::string> all;
    for (const JsonObject& event : reply.events()) {
      const JsonObject& delta = event.at("choices").at(0).at("delta").get_object();
      for (const char* field : {"reasoning_content", "content"})
        if (const Json* text = delta.if_contains(field); text && *text != "")
          all.emplace_back(text->get_string());
      if (delta.contains("tool_calls")) all.emplace_back("call");
    }
    return all;
  }
};

TEST_F(ApiStops, EndAnAnswerInItsContent) {
  const auto reply = chat(R"("stop":["\n"])");
  EXPECT_TRUE(asked().stop_strings.empty());
  engine_.say(0, "hm\nhm\n");
  engine_.say(0, "</think>");
  engine_.say(0, "\n\n");
  engine_.say(0, "One");
  EXPECT_FALSE(engine_.taken[0].cancelled);
  engine_.say(0, " line\nmore");
  EXPECT_TRUE(engine_.taken[0].cancelled);
  engine_.say(0, " of the same step");
  EXPECT_FALSE(reply->ended());
  engine_.end(0, 6, FinishReason::cancelled);
  const JsonObject body = reply->json();
  const Json choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("message").at("reasoning_content"), "hm\nhm\n");
  EXPECT_EQ(choice.at("message").at("content"), "One line");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_EQ(body.at("usage").at("completion_tokens").to_number<int>(), 5);
}

TEST_F(ApiStops, AreHeldBackUntilSomethingElseFollows) {
  const auto reply =
      chat(R"("stop":["END"],"stream":true,"tools":[{"type":"function","function":{"name":"f"}}])");
  engine_.answer(0, {"END</think>", "a", "E", "N", "<tool_call>\n<function=f>\n</function>\n",
                     "</tool_call>", "E"});
  EXPECT_THAT(deltas(*reply), ElementsAre("END", "a", "EN", "call", "E"));
  EXPECT_FALSE(engine_.taken[0].cancelled);
}

TEST_F(ApiStops, EndOneChoiceAndNotTheOthers) {
  const auto reply = chat(R"("stop":"END","n":2)");
  engine_.say(0, "</think>");  // the second choice is submitted
  engine_.say(0, "a END");
  engine_.say(1, "</think>");
  EXPECT_TRUE(engine_.taken[0].cancelled);
  EXPECT_FALSE(engine_.taken[1].cancelled);
  engine_.end(0, 2, FinishReason::cancelled);
  engine_.say(1, "b");
  engine_.end(1, 2, FinishReason::stop_token);
  EXPECT_EQ(reply->json().at("choices").at(0).at("message").at("content"), "a ");
  EXPECT_EQ(reply->json().at("choices").at(1).at("message").at("content"), "b");
}

TEST_F(ApiStops, AreTheEnginesWhereTextIsNotParsed) {
  post("/v1/completions", R"({"prompt":"Hi","stop":["END"]})");
  EXPECT_EQ(asked().stop_strings, std::vector<std::string>{"END"});
}

}  // namespace
}  // namespace slip
