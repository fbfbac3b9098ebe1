// The form of answers: which constraint a request gets, and the budget of thoughts.
#include <gmock/gmock.h>

#include "server/chat_thinking_budget.h"
#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using ::testing::HasSubstr;

class ChatConstraint : public ApiTest {
 protected:
  // The constraint behind the thoughts, which this template opens unless told not to.
  Constraint* constraint(const std::string& members, bool think = false) {
    const auto reply = post("/v1/chat/completions",
                            R"({"messages":[{"role":"user","content":"Hi"}],"enable_thinking":)" +
                                std::string(think ? "true" : "false") + "," + members + "}");
    EXPECT_EQ(reply->status(), 0) << reply->body();
    return engine_.taken.back().request.constraint.get();
  }
  // Whether an answer may be this text and end there.
  static bool accepts(const Constraint& start, const std::string& text) {
    const std::unique_ptr<Constraint> place = start.clone();
    for (const int32_t id : tokenizer().encode(text)) {
      if (!place->allows(id)) return false;
      place->advance(id);
    }
    return place->allows(served().defaults.stop_ids[0]);
  }
};

TEST_F(ChatConstraint, EnforcesWhatIsAskedForUnderAnyName) {
  const char* schema = R"({"type":"object","properties":{"a":{"type":"integer"}},)"
                       R"("required":["a"],"additionalProperties":false})";
  for (
      const std::string& members :
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":)" +
           std::string(schema) + "}}",
       R"("response_format":{"type":"json_object","schema":)" + std::string(schema) + "}",
       R"("structured_outputs":{"json":)" + std::string(schema) + "}",
       R"("guided_json":)" + std::string(schema), R"("json_schema":)" + std::string(schema)}) {
    Constraint* form = constraint(members);
    ASSERT_NE(form, nullptr) << members;
    EXPECT_TRUE(accepts(*form, R"({"a": 5})")) << members;
    EXPECT_FALSE(accepts(*form, R"({"b": 5})")) << members;
    EXPECT_FALSE(accepts(*form, "hello")) << members;
  }
  EXPECT_TRUE(accepts(*constraint(R"("response_format":{"type":"json_object"})"), R"({"x": []})"));
  EXPECT_TRUE(accepts(*constraint(R"("guided_regex":"[ab]+")"), "abba"));
  EXPECT_FALSE(accepts(*constraint(R"("structured_outputs":{"regex":"[ab]+"})"), "abc"));
  EXPECT_TRUE(accepts(*constraint(R"("guided_choice":["yes","no"])"), "no"));
  EXPECT_FALSE(accepts(*constraint(R"("structured_outputs":{"choice":["yes","no"]})"), "maybe"));
  EXPECT_TRUE(accepts(*constraint(R"("grammar":"root ::= \"x\" | \"y\"")"), "y"));
  EXPECT_EQ(constraint(R"("response_format":{"type":"text"})"), nullptr);
}

TEST_F(ChatConstraint, BeginsBehindTheThoughts) {
  Constraint* form = constraint(R"("guided_choice":["yes","no"])", true);
  EXPECT_TRUE(form->free() || form->allows(tokenizer().encode("well")[0]));
  EXPECT_TRUE(accepts(*form, "Let me think.\n</think>\n\nyes"));
  EXPECT_FALSE(accepts(*form, "Let me think.\n</think>\n\nmaybe"));
}

TEST_F(ChatConstraint, NamesTheKeywordThatItCannotDo) {
  const auto reply =
      post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"Hi"}],"response_format":)"
           R"({"type":"json_schema","json_schema":{"schema":{"type":"nonsense"}}}})");
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), HasSubstr("nonsense"));
  EXPECT_EQ(reply->json().at("error").at("param"), "response_format.json_schema.schema");
}

TEST_F(ChatConstraint, EnforcesToolCalls) {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object",)"
      R"("properties":{"city":{"type":"string"}},"required":["city"]}}},)"
      R"({"type":"function","function":{"name":"time","parameters":{"type":"object","properties":{}}}}],)";
  const std::string call =
      "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n"
      "</tool_call>";
  const std::string time = "<tool_call>\n<function=time>\n</function>\n</tool_call>";
  Constraint* required = constraint(tools + R"("tool_choice":"required")");
  ASSERT_NE(required, nullptr);
  EXPECT_TRUE(accepts(*required, call));
  EXPECT_TRUE(accepts(*required, time));
  EXPECT_FALSE(accepts(*required, "No."));
  Constraint* named =
      constraint(tools + R"("tool_choice":{"type":"function","function":{"name":"weather"}})");
  EXPECT_TRUE(accepts(*named, call));
  EXPECT_FALSE(accepts(*named, time));
  Constraint* free = constraint(tools + R"("tool_choice":"auto")");
  ASSERT_NE(free, nullptr);
  EXPECT_TRUE(accepts(*free, "No."));
  EXPECT_TRUE(accepts(*free, call));
  EXPECT_FALSE(accepts(*free, "<tool_call>\n<function=fly>\n"));
}

// Agents with a type of answer send both in every request.
TEST_F(ChatConstraint, AFormAndToolsAreAlternatives) {
  const std::string both =
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
      R"("properties":{}}}}],"response_format":{"type":"json_schema","json_schema":{"schema":)"
      R"({"type":"object","required":["a"],"properties":{"a":{"const":"see <function=f> here"}}}}})";
  const std::string json = R"({"a": "see <function=f> here"})";
  const std::string call = "<tool_call>\n<function=f>\n</function>\n</tool_call>";
  for (const bool think : {false, true}) {
    const Constraint& form = *constraint(both, think);
    const std::string before = think ? "hm</think>\n\n" : "";
    EXPECT_TRUE(accepts(form, before + json));
    EXPECT_TRUE(accepts(form, before + call));
    EXPECT_TRUE(accepts(form, before + call + "\n" + call));
    EXPECT_EQ(accepts(form, "hm" + call), think);
    EXPECT_FALSE(accepts(form, "hm" + json));
    EXPECT_FALSE(accepts(form, before + "Hello"));
    EXPECT_FALSE(accepts(form, before + json + call));
  }
  EXPECT_FALSE(accepts(*constraint(both + R"(,"tool_choice":"required")"), json));
  EXPECT_FALSE(accepts(*constraint(both + R"(,"tool_choice":"none")"), call));
  const auto reply =
      post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"Hi"}],"enable_thinking":false,)" + both + "}");
  engine_.answer(engine_.taken.size() - 1, {R"({"a": "see )", "<function=f> here\"}"});
  EXPECT_THAT(reply->body(), HasSubstr(R"("content":"{\"a\": \"see <function=f> here\"}")"));
}

// What is missing is not made up, in the shape that each protocol has.
TEST_F(ChatConstraint, CallsThatALimitCutsOffStayOpen) {
  const std::string hi = R"("messages":[{"role":"user","content":"Hi"}],"max_tokens":9,)";
  const std::string schema =
      R"({"type":"object","properties":{"x":{"type":"string"}},"required":["x"]})";
  const std::string begun = "<tool_call>\n<function=f>\n<parameter=x>\nsible";
  auto reply =
      post("/v1/chat/completions",
           "{" + hi + R"("enable_thinking":false,"tools":[{"type":"function","function":)" +
               R"({"name":"f","parameters":)" + schema + "}}]}");
  engine_.answer(engine_.taken.size() - 1, {begun}, FinishReason::max_tokens);
  EXPECT_THAT(reply->body(), HasSubstr(R"("arguments": "{\"x\": \"sible"})"));
  EXPECT_THAT(reply->body(), HasSubstr(R"("finish_reason":"length")"));
  reply =
      post("/v1/messages", "{" + hi + R"("tools":[{"name":"f","input_schema":)" + schema + "}]}");
  engine_.answer(engine_.taken.size() - 1, {begun}, FinishReason::max_tokens);
  EXPECT_THAT(reply->body(), HasSubstr(R"("input": {})"));
  EXPECT_THAT(reply->body(), HasSubstr(R"("stop_reason": "max_tokens")"));
}

// On every protocol.
TEST_F(ChatConstraint, StrictToolsAreEnforcedOrRefused) {
  const auto ask = [&](const std::string& path, const std::string& tool) {
    const std::string hi = R"([{"role":"user","content":"Hi"}])";
    const std::string messages = (path == "/v1/responses" ? "\"input\":" : "\"messages\":") + hi;
    return post(path, "{" + messages + R"(,"max_tokens":9,"enable_thinking":false,"tools":[)" +
                          tool + "]}");
  };
  const std::string chat = R"({"type":"function","function":{"name":"f","strict":STRICT,)"
                           R"("parameters":SCHEMA}})";
  const std::string responses =
      R"({"type":"function","name":"f","strict":STRICT,"parameters":SCHEMA})";
  const std::string anthropic = R"({"name":"f","strict":STRICT,"input_schema":SCHEMA})";
  const auto filled = [](std::string tool, const std::string& strict, const std::string& schema) {
    tool.replace(tool.find("STRICT"), 6, strict);
    return tool.replace(tool.find("SCHEMA"), 6, schema);
  };
  const std::string color = R"({"type":"object","properties":{"c":{"$ref":"#/$defs/C"}},)"
                            R"("required":["c"],"$defs":{"C":{"enum":["red"]}}})";
  const std::string odd = R"({"type":"object","properties":{"c":{"type":"string","not":{}}}})";
  for (const auto& [path, tool] :
       {std::pair("/v1/chat/completions", chat), std::pair("/v1/responses", responses),
        std::pair("/v1/messages", anthropic)}) {
    ASSERT_EQ(ask(path, filled(tool, "true", color))->status(), 0) << path;
    const Constraint& form = *engine_.taken.back().request.constraint;
    const std::string call =
        "<tool_call>\n<function=f>\n<parameter=c>\nCOLOR\n</parameter>\n"
        "</function>\n</tool_call>";
    const std::string thoughts = path == std::string("/v1/responses") ? "</think>\n\n" : "";
    const auto with = [&](const std::string& name) {
      return thoughts + std::regex_replace(call, std::regex("COLOR"), name);
    };
    EXPECT_TRUE(accepts(form, with("red"))) << path;
    EXPECT_FALSE(accepts(form, with("blue"))) << path;
    const auto refused = ask(path, filled(tool, "true", odd));
    EXPECT_EQ(refused->status(), 400) << path;
    EXPECT_THAT(refused->body(), HasSubstr("not")) << path;
    EXPECT_EQ(ask(path, filled(tool, "false", odd))->status(), 0) << path;
  }
}

TEST_F(ChatConstraint, EndsThoughtsAfterTheirBudget) {
  ThinkingBudget budget(tokenizer(), {Thoughts::begun, 2, true}, nullptr);
  const int32_t word = tokenizer().encode("word")[0];
  EXPECT_TRUE(budget.free());
  budget.advance(word);
  EXPECT_TRUE(budget.free());
  budget.advance(word);
  std::vector<int32_t> forced;
  while (!budget.free()) {
    ASSERT_EQ(budget.allowed().size(), 1);
    EXPECT_FALSE(budget.allows(word));
    for (int32_t id = 0; id < tokenizer().vocab_size(); ++id)
      if (budget.allowed().contains(id)) forced.push_back(id);
    EXPECT_TRUE(budget.allows(forced.back()));
    const std::unique_ptr<Constraint> copy = budget.clone();
    copy->advance(forced.back());
    EXPECT_FALSE(budget.free());  // a copy walks alone
    budget.advance(forced.back());
    ASSERT_LT(forced.size(), 50u);
  }
  EXPECT_THAT(tokenizer().decode(forced), ::testing::EndsWith("</think>\n\n"));
  for (int i = 0; i < 20; ++i) budget.advance(word);
  EXPECT_TRUE(budget.free());
}

TEST_F(ChatConstraint, LeavesThoughtsThatEndInTimeAlone) {
  for (const char* end : {"</think>", "<tool_call>"}) {
    ThinkingBudget budget(tokenizer(), {Thoughts::begun, 2, true}, nullptr);
    budget.advance(*tokenizer().find(end));
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(budget.free());
      budget.advance(65);
    }
  }
}

TEST_F(ChatConstraint, WithoutToolsACallsTagIsAThought) {
  ThinkingBudget budget(tokenizer(), {Thoughts::begun, 2, false}, nullptr);
  budget.advance(*tokenizer().find("<tool_call>"));
  EXPECT_TRUE(budget.free());
  budget.advance(65);
  EXPECT_FALSE(budget.free());
}

TEST_F(ChatConstraint, TakesTheBudgetByAnyName) {
  for (const char* members :
       {R"("thinking_token_budget":0)", R"("reasoning_budget_tokens":0)", R"("thinking_budget":0)",
        R"("thinking":{"type":"enabled","budget_tokens":0})"}) {
    Constraint* budget = constraint(members, true);
    ASSERT_NE(budget, nullptr) << members;
    EXPECT_EQ(budget->allowed().size(), 1) << members;
  }
  EXPECT_EQ(constraint(R"("thinking_token_budget":5)", false), nullptr);  // no thoughts to end
  // With a form behind it.
  Constraint* both = constraint(R"("thinking_token_budget":1,"guided_choice":["yes"])", true);
  EXPECT_TRUE(accepts(*both, "\n</think>\n\nyes") || accepts(*both, "</think>\n\nyes"));
  EXPECT_FALSE(accepts(*both, "</think>\n\nno"));
}

}  // namespace
}  // namespace slip
