// Thousands of broken bodies: each gets an answer or a proper error.
#include <gtest/gtest.h>

#include <random>

#include "tests/server/api_fixture.h"

namespace slip {
namespace {

struct Endpoint {
  const char* path;
  const char* body;
};

const Endpoint kEndpoints[] = {
    {"/v1/chat/completions",
     R"({"model":"minnow","messages":[{"role":"system","content":"S"},{"role":"user","content":)"
     R"([{"type":"text","text":"Hi"}]},{"role":"assistant","content":null,"reasoning":"r","tool_calls":)"
     R"([{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},)"
     R"({"role":"tool","tool_call_id":"1","content":"t"}],"tools":[{"type":"function","function":)"
     R"({"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}],)"
     R"("tool_choice":"auto","temperature":0.5,"top_p":0.9,"top_k":5,"n":2,"stop":["a","b"],)"
     R"("logit_bias":{"5":1},"seed":3,"stream":true,"stream_options":{"include_usage":true},)"
     R"("max_tokens":5,"thinking_token_budget":2,"logprobs":true,"top_logprobs":2})"},
    {"/v1/chat/completions",
     R"({"messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_schema",)"
     R"("json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"a":)"
     R"({"type":"array","items":{"type":"number","minimum":1}},"b":{"enum":["x",2]}},"required":["a"]}}}})"},
    {"/v1/completions",
     R"({"prompt":["Once",[1,2,3]],"echo":true,"max_tokens":4,"n":2,"guided_regex":"[a-z]+(b|c)?"})"},
    {"/v1/messages",
     R"({"max_tokens":5,"system":[{"type":"text","text":"S"}],"messages":[{"role":"user","content":)"
     R"([{"type":"text","text":"Hi"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t"},)"
     R"({"type":"tool_use","id":"t","name":"f","input":{"a":[1,{"b":null}]}}]},{"role":"user","content":)"
     R"([{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"},)"
     R"({"type":"document","title":"T","source":{"type":"content","content":[{"type":"text","text":"d"}]}},)"
     R"({"type":"search_result","source":"s","title":"T","content":[]}]}]}],"tools":)"
     R"([{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"},"stream":true,)"
     R"("thinking":{"type":"enabled","budget_tokens":5},"stop_sequences":["x"]})"},
    {"/v1/responses",
     R"({"instructions":"I","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]},)"
     R"({"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"r"}]},)"
     R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"},)"
     R"({"type":"function_call_output","call_id":"c","output":"o"},)"
     R"({"type":"custom_tool_call","call_id":"d","namespace":"s","name":"p","input":"i"}],)"
     R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"}},)"
     R"({"type":"namespace","name":"s","tools":[{"type":"custom","name":"p","format":)"
     R"({"definition":"g"}}]}],"tool_choice":{"type":"custom","name":"s.p"},"reasoning":{"effort":"low"},"stream":true,)"
     R"("text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}})"},
    {"/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":"Hi"}]})"},
    {"/tokenize", R"({"content":"Hello","parse_special":true,"with_pieces":true})"},
    {"/detokenize", R"({"tokens":[1,2,3]})"},
};

class ApiMutations : public ApiTest {
 protected:
  // Any value may stand anywhere.
  Json strange() {
    switch (random_() % 12) {
      case 0: return nullptr;
      case 1: return bool(random_() % 2);
      case 2: return int64_t(random_()) - (int64_t(1) << 31);
      case 3: return -1;
      case 4: return 1e308;
      case 5: return "";
      case 6: return "<|im_end|>\xEF\xB7\x90";
      case 7: return JsonArray();
      case 8: return JsonObject();
      case 9: return JsonArray{JsonObject{{"type", "text"}}, nullptr, 5};
      case 10: return JsonObject{{"role", "user"}, {"type", 3}, {"text", JsonArray()}};
      default: return std::numeric_limits<uint64_t>::max();
    }
  }
  void mutate(Json& value) {
    const bool here = random_() % 6 == 0;
    if (here) {
      value = strange();
    } else if (value.is_array() && !value.get_array().empty()) {
      mutate(value.get_array()[random_() % value.get_array().size()]);
    } else if (value.is_object() && !value.get_object().empty()) {
      JsonObject& object = value.get_object();
      auto entry = object.begin() + int64_t(random_() % object.size());
      if (random_() % 8 == 0)
        object.erase(entry);
      else
        mutate(entry->value());
    } else {
      value = strange();
    }
  }
  std::string broken(const std::string& body) {
    std::string text = body;
    if (random_() % 3 > 0) {
      Json json = parse_json(body, "").value();
      const int changes = 1 + int(random_() % 3);
      for (int i = 0; i < changes; ++i) mutate(json);
      text = dump_json(json);
    }
    if (random_() % 3 == 0) {
      const int changes = 1 + int(random_() % 4);
      for (int i = 0; i < changes && !text.empty(); ++i) {
        const size_t at = random_() % text.size();
        switch (random_() % 4) {
          case 0: text[at] = char(random_()); break;
          case 1: text.erase(at, 1 + random_() % 5); break;
          case 2: text.insert(at, 1, "{}[]\",:\\0-"[random_() % 10]); break;
          default: text.resize(at); break;
        }
      }
    }
    return text;
  }
  static void expect_proper(const RecordedReply& reply, const std::string& body) {
    ASSERT_TRUE(reply.ended()) << body;
    if (reply.status() == 200) return;
    EXPECT_TRUE(reply.status() == 400 || reply.status() == 404) << reply.status() << " " << body;
    const JsonObject json = reply.json();
    ASSERT_TRUE(json.contains("error")) << body;
    EXPECT_FALSE(json.at("error").at("message").get_string().empty()) << body;
    EXPECT_FALSE(json.at("error").at("type").get_string().empty()) << body;
  }

  std::mt19937 random_{20251};
};

TEST_F(ApiMutations, AlwaysGiveAProperReply) {
  int accepted = 0, refused = 0;
  for (const Endpoint& endpoint : kEndpoints) {
    for (int i = 0; i < 1500; ++i) {
      const std::string body = broken(endpoint.body);
      engine_.taken.clear();
      const auto reply = post(endpoint.path, body);
      for (size_t choice = 0; choice < engine_.taken.size(); ++choice)
        engine_.answer(choice, {"hm", "</think>", "Hel", "lo"});
      expect_proper(*reply, body);
      if (HasFatalFailure()) return;
      ++(reply->status() == 200 ? accepted : refused);
    }
  }
  std::printf("%d answered, %d refused\n", accepted, refused);
  EXPECT_GT(accepted, 500);  // both paths were walked
  EXPECT_GT(refused, 3000);
}

TEST_F(ApiMutations, DeepAndLargeBodiesAreRefusedOrRead) {
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  for (const Endpoint& endpoint : kEndpoints) {
    EXPECT_EQ(post(endpoint.path, R"({"messages":)" + deep + "}")->status(), 400);
    EXPECT_EQ(post(endpoint.path, std::string(100000, '{'))->status(), 400);
  }
  const std::string long_text(300000, 'x');
  EXPECT_EQ(post("/v1/chat/completions",
                 R"({"messages":[{"role":"user","content":")" + long_text + R"("}]})")
                ->json()
                .at("error")
                .at("code"),
            "context_length_exceeded");
  std::string marks;
  for (int i = 0; i < 100000; ++i) marks += "<|im_end|>";
  EXPECT_EQ(
      post("/v1/chat/completions", R"({"messages":[{"role":"user","content":")" + marks + R"("}]})")
          ->status(),
      400);
}

}  // namespace
}  // namespace slip
