// Requests as well-known clients send them, and what they rely on in the replies.
#include <gmock/gmock.h>

#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ApiClients : public ApiTest {
 protected:
  size_t last() const { return engine_.taken.size() - 1; }
};

TEST_F(ApiClients, OpenWebUi) {
  // It verifies a connection with the list, and shows what `timings` holds; null would end it.
  EXPECT_THAT(request("GET", "/v1/models")->body(), Not(HasSubstr("null")));
  const auto reply = post("/v1/chat/completions", R"({"stream":true,"model":"minnow","messages":[
      {"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"Hi",
      "cache_control":{"type":"ephemeral"}}]}],"stream_options":{"include_usage":true},
      "chat_id":"x","session_id":"y","features":{},"tool_ids":null,"files":null})");
  engine_.answer(0, {"</think>", "Hello"});
  for (const JsonObject& event : reply->events()) {
    if (event.contains("timings")) {
      EXPECT_TRUE(event.at("timings").is_object());
    }
    if (event.contains("usage")) {
      EXPECT_TRUE(event.at("usage").is_object());
    }
  }
  // Titles are made beside the chat, in one piece.
  const auto title = post("/v1/chat/completions", R"({"model":"minnow","messages":[{"role":"user",
      "content":"### Task: title"}],"stream":false,"max_completion_tokens":1000,
      "metadata":{"task":"title_generation"}})");
  engine_.answer(1, {"</think>", "{\"title\":\"x\"}"});
  EXPECT_EQ(title->json().at("choices").at(0).at("message").at("content"), "{\"title\":\"x\"}");
}

TEST_F(ApiClients, Cline) {
  const std::string body = R"({"model":"minnow","temperature":0,"stream":true,
      "stream_options":{"include_usage":true},"messages":[{"role":"system","content":"You are Cline"},
      {"role":"user","content":[{"type":"text","text":"<task>a</task>"},{"type":"text",
      "text":"<environment_details>b</environment_details>"}]}],"max_tokens":)";
  const auto reply = post("/v1/chat/completions", body + "8}");
  EXPECT_EQ(asked().sampling.temperature, 0.0f);
  // An empty turn must not look finished when it was cut short.
  engine_.answer(0, {"thinking"}, FinishReason::max_tokens);
  EXPECT_THAT(reply->body(), HasSubstr(R"("finish_reason":"length")"));
  // It compacts on this code.
  engine_.context_length = 20;
  EXPECT_EQ(post("/v1/chat/completions", body + "8}")->json().at("error").at("code"),
            "context_length_exceeded");
}

TEST_F(ApiClients, Roo) {
  const auto reply = post("/v1/chat/completions", R"({"model":"minnow","messages":[
      {"role":"system","content":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}]},
      {"role":"user","content":"do"}],"stream":true,"stream_options":{"include_usage":true},
      "thinking":{"type":"enabled"},"parallel_tool_calls":false,"tool_choice":"auto","tools":[
      {"type":"function","function":{"name":"read_file","strict":true,"parameters":{"type":"object",
      "properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}}}]})");
  engine_.answer(0, {"</think>", "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n",
                     "</parameter>\n</function>\n</tool_call>"});
  // Calls are closed by exactly this value, and thoughts are read from reasoning_content alone.
  EXPECT_THAT(reply->body(), HasSubstr(R"("finish_reason":"tool_calls")"));
}

TEST_F(ApiClients, LlamaBenchy) {
  // 0.3 calls .get() on the usage of every chunk that has one.
  auto reply = post("/v1/chat/completions", R"({"model":"minnow","messages":[{"role":"user",
      "content":"x"}],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}})");
  engine_.answer(last(), {"a", "b", "c", "d"}, FinishReason::max_tokens);
  int counted = 0;
  for (const JsonObject& event : reply->events()) {
    if (event.contains("usage")) {
      EXPECT_EQ(event.at("usage").at("completion_tokens").to_number<int>(), 4);
    }
    for (const Json& choice : event.at("choices").get_array()) {
      const JsonObject& delta = choice.at("delta").get_object();
      counted += delta.contains("reasoning_content") ||
                 (delta.contains("content") && delta.at("content") != "");
    }
  }
  EXPECT_EQ(counted, 4);
  // 0.4 takes token ids first, and the decode time from the timings.
  reply = post("/v1/chat/completions", R"({"model":"minnow","messages":[{"role":"user",
      "content":"x"}],"max_tokens":3,"min_tokens":3,"ignore_eos":true,"cache_prompt":false,
      "stream":true,"stream_options":{"include_usage":true},"return_token_ids":true})");
  EXPECT_FALSE(asked().reuse_prefix);
  EXPECT_TRUE(asked().stop_ids.empty());
  engine_.answer(last(), {"a", "", "c"}, FinishReason::max_tokens);
  int ids = 0;
  for (const JsonObject& event : reply->events())
    for (const Json& choice : event.at("choices").get_array())
      if (choice.as_object().contains("token_ids"))
        ids += int(choice.at("token_ids").get_array().size());
  EXPECT_EQ(ids, 3);
  EXPECT_TRUE(reply->events().back().at("timings").get_object().contains("predicted_ms"));
}

TEST_F(ApiClients, ClaudeCode) {
  const auto reply = post("/v1/messages", R"({"model":"minnow","max_tokens":32000,"stream":true,
      "system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.37.fbe; cc_entrypoint=cli; cch=a1b2c;"},
      {"type":"text","text":"You are Claude Code.","cache_control":{"type":"ephemeral","ttl":"1h"}}],
      "messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>r</system-reminder>"},
      {"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],
      "tools":[{"name":"Bash","description":"Runs","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema",
      "type":"object","properties":{"command":{"type":"string","description":"c"},"timeout":{"type":"number"}},
      "required":["command"],"additionalProperties":false},"eager_input_streaming":true}],
      "metadata":{"user_id":"u"},"thinking":{"type":"adaptive"},"context_management":{"edits":[]},
      "output_config":{"effort":"medium"},"temperature":1})");
  ASSERT_EQ(reply->status(), 200) << reply->body();
  EXPECT_THAT(prompt_text(), Not(HasSubstr("cch=")));
  EXPECT_THAT(prompt_text(), HasSubstr("You are Claude Code."));
  engine_.answer(0,
                 {"ok", "</think>", "\n\n<tool_call>\n<function=Bash>\n<parameter=command>\nls\n",
                  "</parameter>\n</function>\n</tool_call>"});
  EXPECT_THAT(reply->body(), HasSubstr("event: content_block_start"));
  EXPECT_THAT(reply->body(), HasSubstr(R"("stop_reason": "tool_use")"));
  // Its probe for the quota.
  EXPECT_EQ(post("/v1/messages", R"({"model":"minnow","max_tokens":1,"messages":[{"role":"user",
      "content":"quota"}],"metadata":{"user_id":"u"}})")
                ->status(),
            0);
}

TEST_F(ApiClients, Codex) {
  const auto reply = post("/v1/responses", R"({"model":"minnow","instructions":"You are Codex.",
      "input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions>"}]},
      {"type":"message","role":"user","content":[{"type":"input_text","text":"ls"}]},
      {"type":"reasoning","summary":[{"type":"summary_text","text":"short"}],"content":null,"encrypted_content":null},
      {"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"},
      {"type":"function_call_output","call_id":"call_1","output":"a.txt"}],
      "tools":[{"type":"function","name":"shell","description":"d","strict":false,"parameters":{"type":"object",
      "properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"],
      "additionalProperties":false}},{"type":"web_search","external_web_access":false}],
      "tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"medium","summary":"auto"},
      "store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k",
      "text":{"verbosity":"low"}})");
  ASSERT_EQ(reply->status(), 200) << reply->body();
  EXPECT_THAT(prompt_text(), HasSubstr("<tool_response>\na.txt\n</tool_response>"));
  engine_.answer(0, {"done", "</think>", "There is a.txt"});
  EXPECT_EQ(reply->events().back().at("type"), "response.completed");
}

TEST_F(ApiClients, Continue) {
  // Completions while typing: many stop strings, and a hang-up at the next key.
  const auto reply =
      post("/v1/completions", R"({"model":"minnow","max_tokens":256,"temperature":0.01,
      "stream":true,"prompt":"def f(","stop":["<fim_prefix>","<fim_suffix>","<fim_middle>","\n\n",
      "<|endoftext|>","</code>"]})");
  EXPECT_EQ(reply->status(), 200);
  reply->hang_up();
  EXPECT_TRUE(engine_.taken[0].cancelled);
}

TEST_F(ApiClients, LibreChat) {
  const auto reply = post("/v1/chat/completions", R"({"model":"minnow","user":"65f","stream":true,
      "messages":[{"role":"user","content":"Hi"}],"temperature":1,"top_p":1,"presence_penalty":0,
      "frequency_penalty":0,"stop":[],"n":1,"logprobs":false,"reasoning_effort":"low"})");
  EXPECT_EQ(reply->status(), 200);
}

}  // namespace
}  // namespace slip
