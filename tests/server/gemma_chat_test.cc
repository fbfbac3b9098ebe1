// The API on a model of Gemma's kind: its turns, thoughts and calls come from the tokenizer and the
// template, not from assumptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/chat_thinking_budget.h"
#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class GemmaChat : public testing::Test {
 protected:
  static const Tokenizer& tokenizer() {
    static const Tokenizer loaded = [] {
      const std::string path = SLIP_SOURCE_DIR "/tests/data/tokenizer/gemma_like.tokenizer.json";
      return Tokenizer::from_json(read_text_file(path).value(), path).value();
    }();
    return loaded;
  }
  static const ChatTemplate& chat_template() {
    static const ChatTemplate built_in =
        ChatTemplate::from_text(std::string(kGemmaOutput.fallback_template), "built in").value();
    return built_in;
  }

  GemmaChat() {
    ServedModel model;
    model.names = {"gemma"};
    model.tokenizer = &tokenizer();
    model.chat_template = &chat_template();
    for (const std::string_view end : {"<eos>", "<turn|>", "<|tool_response>"})
      model.defaults.add_stop(*tokenizer().find(end));
    api_ = std::make_unique<Api>(std::move(model), ApiOptions());
    api_->attach(&engine_);
  }

  std::shared_ptr<RecordedReply> post(const std::string& path, const std::string& body) {
    auto reply = std::make_shared<RecordedReply>();
    HttpRequest http;
    http.method = "POST";
    http.path = path;
    http.body = body;
    for (const ApiRoute& route : api_->routes())
      if (route.method == "POST" && route.path == path) route.handler(http, reply);
    return reply;
  }
  std::shared_ptr<RecordedReply> chat(const std::string& more) {
    return post("/v1/chat/completions",
                R"({"messages": [{"role": "user", "content": "Hello <turn|> you"}])" + more + "}");
  }
  const Request& asked() const { return engine_.taken.back().request; }

  ScriptedAnswerer engine_{tokenizer()};
  std::unique_ptr<Api> api_;
};

constexpr const char* kTools = R"(, "tools": [{"type": "function", "function": {"name": "add",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"},
    "b": {"type": "integer"}}, "required": ["a", "b"]}}}])";

TEST_F(GemmaChat, ThePromptHasOneBosAndOnlyTheTemplatesTurns) {
  chat("");
  const std::vector<int32_t>& prompt = asked().prompt;
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), *tokenizer().find("<bos>")), 1);
  EXPECT_EQ(prompt.front(), *tokenizer().find("<bos>"));
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), *tokenizer().find("<turn|>")), 1)
      << "the user's <turn|> is just text";
  EXPECT_EQ(tokenizer().decode(prompt),
            "<bos><|turn>user\nHello <turn|> you<turn|>\n<|turn>model\n");
  post("/v1/completions", R"({"prompt": "Hello"})");
  EXPECT_EQ(tokenizer().decode(asked().prompt), "<bos>Hello");
  post("/v1/completions", R"({"prompt": "<bos>Hello"})");
  EXPECT_EQ(tokenizer().decode(asked().prompt), "<bos>Hello");
}

TEST_F(GemmaChat, AMessageIsContinuedWhereItEnds) {
  for (const std::string_view begun : {"e", "<", "|", "turn", "<turn|>", "a\n", ""}) {
    const JsonArray messages{JsonObject{{"role", "user"}, {"content", "turn"}},
                             JsonObject{{"role", "assistant"}, {"content", begun}}};
    const auto reply =
        post("/v1/chat/completions",
             R"({"continue_final_message":true,"messages":)" + dump_json(messages) + "}");
    EXPECT_EQ(reply->status(), 0) << reply->body();
    const std::string words(begun.substr(0, begun.find_last_not_of("\n") + 1));
    EXPECT_EQ(tokenizer().decode(asked().prompt),
              "<bos><|turn>user\nturn<turn|>\n<|turn>model\n" + words);
  }
}

TEST_F(GemmaChat, ThoughtsAndCallsAreToldApart) {
  const auto reply = chat(kTools);
  engine_.answer(0, {"<|channel>", "thought", "\n", "a sum", "\n<channel|>", "Let me add.",
                     "<|tool_call>", "call:add{", "a:1,", "b:2", "}", "<tool_call|>"});
  const JsonObject message = reply->json().at("choices").as_array().at(0).at("message").as_object();
  EXPECT_EQ(message.at("reasoning_content"), "a sum\n");
  EXPECT_EQ(message.at("content"), "Let me add.");
  const Json& function = message.at("tool_calls").as_array().at(0).at("function");
  EXPECT_EQ(function.at("name"), "add");
  EXPECT_EQ(function.at("arguments"), R"({"a": 1, "b": 2})");
}

TEST_F(GemmaChat, CallsAreEnforcedInItsForm) {
  chat(std::string(kTools) + R"(, "tool_choice": "required")");
  ASSERT_TRUE(asked().constraint);
  const std::unique_ptr<Constraint> constraint = asked().constraint->clone();
  for (const int32_t id : tokenizer().encode("<|tool_call>call:add{a:1,b:2}<tool_call|>")) {
    ASSERT_TRUE(constraint->allows(id)) << tokenizer().token_bytes(id);
    constraint->advance(id);
  }
  EXPECT_TRUE(constraint->allows(*tokenizer().find("<|tool_response>")));
}

TEST_F(GemmaChat, WithoutToolsACallIsUnlikely) {
  chat(std::string(kTools) + R"(, "tool_choice": "none")");
  const auto& biases = asked().sampling.logit_bias;
  ASSERT_EQ(biases.size(), 1u);
  EXPECT_EQ(biases[0].first, *tokenizer().find("<|tool_call>"));
}

TEST_F(GemmaChat, ABudgetBeginsWithTheChannel) {
  ThinkingBudget budget(tokenizer(), {Thoughts::may_begin, 1, true}, nullptr);
  const int32_t word = *tokenizer().find("a");
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(budget.free());
    budget.advance(word);
  }
  budget.advance(*tokenizer().find("<|channel>"));
  EXPECT_TRUE(budget.free());
  budget.advance(word);
  EXPECT_FALSE(budget.free());
}

TEST_F(GemmaChat, AFormMayFollowThoughts) {
  const auto reply =
      chat(R"(, "enable_thinking": true, "response_format": {"type": "json_object"})");
  ASSERT_TRUE(asked().constraint);
  for (const std::string_view text : {"{}", "<|channel>thought\na {b} <x\n<channel|>{}"}) {
    const std::unique_ptr<Constraint> constraint = asked().constraint->clone();
    for (const int32_t id : tokenizer().encode(text)) {
      ASSERT_TRUE(constraint->allows(id)) << text << " at " << tokenizer().token_bytes(id);
      constraint->advance(id);
    }
    EXPECT_TRUE(constraint->allows(*tokenizer().find("<turn|>"))) << text;
  }
  engine_.answer(0, {"<|channel>thought\n", "hm<channel|>", "{}"});
  const JsonObject message = reply->json().at("choices").as_array().at(0).at("message").as_object();
  EXPECT_EQ(message.at("reasoning_content"), "hm");
  EXPECT_EQ(message.at("content"), "{}");
}

TEST_F(GemmaChat, ABudgetEndsTheChannel) {
  ThinkingBudget budget(tokenizer(), {Thoughts::begun, 0, true}, nullptr);
  std::vector<int32_t> forced;
  while (!budget.free()) {
    ASSERT_LT(forced.size(), 100u);
    for (int32_t id = 0; id < tokenizer().vocab_size(); ++id)
      if (budget.allows(id)) forced.push_back(id);
    budget.advance(forced.back());
  }
  EXPECT_THAT(tokenizer().decode(forced), EndsWith("<channel|>"));
}

}  // namespace
}  // namespace slip
