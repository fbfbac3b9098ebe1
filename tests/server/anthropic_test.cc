// /v1/messages and /v1/messages/count_tokens.
#include <gmock/gmock.h>

#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Anthropic : public ApiTest {
 protected:
  std::shared_ptr<RecordedReply> message(const std::string& more = "") {
    return post("/v1/messages",
                R"({"model":"minnow","max_tokens":50,"messages":[{"role":"user","content":"Hi"}])" +
                    more + "}");
  }
  static std::string event(const std::string& name, const std::string& members) {
    return "event: " + name + "\ndata: {\"type\":\"" + name + "\"" +
           (members.empty() ? "" : "," + members) + "}\n\n";
  }
};

const char kTools[] = R"(,"tools":[{"name":"weather","description":"d","input_schema":)"
                      R"({"type":"object","properties":{"city":{"type":"string"}}}}])";

TEST_F(Anthropic, StreamsBlocks) {
  const auto reply = message(
      std::string(kTools) + R"(,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024})");
  engine_.ending.cached_tokens = 2;
  engine_.answer(0, {"hm", "</think>", "\n\n", "Look:", "\n<tool_call>\n<function=weather>\n",
                     "<parameter=city>\nRome\n</parameter>\n", "</function>\n</tool_call>"});
  const std::string prompt = std::to_string(asked().prompt.size());
  const std::string rest = std::to_string(asked().prompt.size() - 2);
  std::string body = steady(reply->body());
  // How arguments are cut is the parser's affair: joined they are JSON.
  std::string arguments;
  for (const JsonObject& each : reply->events())
    if (each.contains("delta") && each.at("delta").get_object().contains("partial_json"))
      arguments += std::string_view(each.at("delta").at("partial_json").get_string());
  EXPECT_EQ(parse_json(arguments, "").value(), (JsonObject{{"city", "Rome"}}));
  body = std::regex_replace(
      body, std::regex("event: content_block_delta\ndata: [^\n]*input_json_delta[^\n]*\n\n"), "");
  EXPECT_EQ(
      body,
      event(
          "message_start",
          R"("message":{"id": "msg_ID", "type": "message", "role": "assistant", "model": "minnow", )"
          R"("content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": )" +
              prompt +
              R"(, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}})") +
          event("content_block_start",
                R"("index":0,"content_block":{"type":"thinking","thinking":"","signature":""})") +
          event("content_block_delta",
                R"("index":0,"delta":{"type":"thinking_delta","thinking":"hm"})") +
          event("content_block_delta",
                R"("index":0,"delta":{"type":"signature_delta","signature":"slipstream"})") +
          event("content_block_stop", R"("index":0)") +
          event("content_block_start", R"("index":1,"content_block":{"type":"text","text":""})") +
          event("content_block_delta",
                R"("index":1,"delta":{"type":"text_delta","text":"Look:"})") +
          event("content_block_stop", R"("index":1)") +
          event("content_block_start",
                R"("index":2,"content_block":{"type": "tool_use", "id": "toolu_ID", )"
                R"("name": "weather", "input": {}})") +
          event("content_block_stop", R"("index":2)") +
          event(
              "message_delta",
              R"("delta":{"stop_reason": "tool_use", "stop_sequence": null},"usage":)"
              R"({"input_tokens": )" +
                  rest +
                  R"(, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 2, "output_tokens": 7})") +
          event("message_stop", ""));
  EXPECT_TRUE(reply->ended());
}

TEST_F(Anthropic, LeavesOutToolsThatRunElsewhere) {
  const auto reply =
      message(R"(,"tools":[{"type":"web_search_20250305","name":"web_search"},)"
              R"({"type":"custom","name":"weather","input_schema":{"type":"object"}}])");
  EXPECT_EQ(reply->status(), 0) << reply->body();  // being answered
  EXPECT_THAT(prompt_text(), ::testing::HasSubstr("\"weather\""));
  EXPECT_THAT(prompt_text(), ::testing::Not(::testing::HasSubstr("web_search")));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], ::testing::HasSubstr("web_search_20250305"));
}

TEST_F(Anthropic, RepliesInOnePiece) {
  const auto reply = message(R"(,"stop_sequences":["END"])");
  engine_.answer(0, {"Hello", "END"}, FinishReason::cancelled);
  const JsonObject body = reply->json();
  EXPECT_EQ(body.at("type"), "message");
  EXPECT_EQ(body.at("content"), (JsonArray{JsonObject{{"type", "text"}, {"text", "Hello"}}}));
  EXPECT_EQ(body.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(body.at("stop_sequence"), "END");
  EXPECT_EQ(body.at("usage").at("output_tokens").to_number<int>(), 2);
}

TEST_F(Anthropic, GivesToolUseAsObjects) {
  const auto reply = message(std::string(kTools) + R"(,"tool_choice":{"type":"any"})");
  engine_.answer(0, {"<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n"
                     "</function>\n</tool_call>"});
  const JsonObject body = reply->json();
  EXPECT_EQ(body.at("stop_reason"), "tool_use");
  EXPECT_EQ(body.at("content").at(0).at("input"), (JsonObject{{"city", "Rome"}}));
}

TEST_F(Anthropic, ThinksOnlyIfAsked) {
  message();
  EXPECT_THAT(prompt_text(), ::testing::EndsWith("<think>\n\n</think>\n\n"));
  message(R"(,"thinking":{"type":"adaptive"})");
  EXPECT_THAT(prompt_text(), ::testing::EndsWith("<think>\n"));
}

TEST_F(Anthropic, ReadsBlocksOfAllKinds) {
  post("/v1/messages",
       R"({"max_tokens":5,"system":[{"type":"text","text":"One.","cache_control":{}},
      {"type":"text","text":"Two."}],"messages":[
      {"role":"user","content":[{"type":"text","text":"Weather?"}]},
      {"role":"system","content":"Three."},
      {"role":"assistant","content":[{"type":"thinking","thinking":"Look.","signature":"s"},
        {"type":"redacted_thinking","data":"x"},{"type":"text","text":"A moment."},
        {"type":"tool_use","id":"t1","name":"weather","input":{"city":"Rome"}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[
        {"type":"text","text":"sunny"}]}]}]})");
  EXPECT_EQ(prompt_text(),
            "<|im_start|>system\nOne.\n\nTwo.\n\nThree.<|im_end|>\n"
            "<|im_start|>user\nWeather?<|im_end|>\n"
            "<|im_start|>assistant\n<think>\nLook.\n</think>\n\nA moment.\n\n<tool_call>\n"
            "<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>"
            "<|im_end|>\n<|im_start|>user\n<tool_response>\nsunny\n</tool_response><|im_end|>\n"
            "<|im_start|>assistant\n<think>\n\n</think>\n\n");
}

TEST_F(Anthropic, ReadsTextInAllItsForms) {
  const auto reply = post("/v1/messages", R"({"max_tokens":5,"messages":[
      {"role":"user","content":[
        {"type":"document","title":"Report","context":"Of May.",
         "source":{"type":"text","media_type":"text/plain","data":"All is well."}},
        {"type":"document","source":{"type":"content","content":[{"type":"text","text":"Part."}]}},
        {"type":"search_result","source":"http://a","title":"A","content":[
          {"type":"text","text":"Found."}]}]},
      {"role":"assistant","content":[
        {"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}},
        {"type":"web_search_tool_result","tool_use_id":"s1","content":[
          {"type":"web_search_result","encrypted_content":"x"}]},
        {"type":"tool_use","id":"t1","name":"find","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[
        {"type":"tool_reference","tool_name":"weather"},
        {"type":"search_result","source":"http://b","title":"B","content":[]},
        {"type":"document","source":{"type":"text","data":"Read."}}]}]}]})");
  EXPECT_EQ(reply->status(), 0) << reply->body();
  EXPECT_THAT(prompt_text(), HasSubstr("<|im_start|>user\nReport\nOf May.\nAll is well.\nPart.\n"
                                       "A\nhttp://a\nFound.<|im_end|>\n"));
  EXPECT_THAT(prompt_text(), HasSubstr("<tool_response>\nweather\nB\nhttp://b\nRead.\n<"));
  EXPECT_THAT(prompt_text(), Not(HasSubstr("web_search")));
}

// Claude Code sends a picture that its tool has read again with every turn.
TEST_F(Anthropic, NotesWhatCannotBeReadInAToolResult) {
  const auto reply = post("/v1/messages", R"({"max_tokens":5,"messages":[
      {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[
        {"type":"text","text":"a.png"},
        {"type":"image","source":{"type":"base64","data":"AAAA"}},
        {"type":"document","source":{"type":"base64","data":"AAAA"}}]}]}]})");
  EXPECT_EQ(reply->status(), 0) << reply->body();
  EXPECT_THAT(prompt_text(),
              HasSubstr("<tool_response>\na.png\n[left out: image; only text can be read here]\n"
                        "[left out: document; only text can be read here]\n</tool_response>"));
}

TEST_F(Anthropic, ContinuesAPrefilledAnswer) {
  const auto reply = post("/v1/messages", R"({"max_tokens":5,"messages":[
      {"role":"user","content":"JSON please"},{"role":"assistant","content":"{\"a\":"}]})");
  EXPECT_THAT(prompt_text(), ::testing::EndsWith("</think>\n\n{\"a\":"));
  engine_.answer(0, {" 1}"});
  EXPECT_EQ(reply->json().at("content").at(0).at("text"), " 1}");
}

TEST_F(Anthropic, ForgetsTheLineThatChangesWithEveryRequest) {
  const auto prompt = [&](const char* hash) {
    message(
        R"(,"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.36; cch=)" +
        std::string(hash) + R"("},{"type":"text","text":"You are helpful."}])");
    return asked().prompt;
  };
  EXPECT_EQ(prompt("a1b2"), prompt("c3d4"));
  EXPECT_THAT(prompt_text(), Not(HasSubstr("billing")));
  message(R"(,"system":"x-anthropic-billing-header: x\nKept.")");
  EXPECT_THAT(prompt_text(), HasSubstr("system\nKept.<|im_end|>"));
}

TEST_F(Anthropic, ShortensAnswersToTheContext) {
  engine_.context_length = 64;
  const auto reply =
      post("/v1/messages",
           R"({"max_tokens":32000,"messages":[{"role":"user","content":"Hi"}],"stream":true})");
  EXPECT_EQ(reply->status(), 200);
  EXPECT_EQ(asked().max_tokens, 64 - int64_t(asked().prompt.size()));
}

TEST_F(Anthropic, SaysThatAPromptIsTooLongAsClaudeCodeExpects) {
  engine_.context_length = 10;
  const auto reply = message();
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(std::string(reply->json().at("error").at("message").get_string()),
              ::testing::MatchesRegex("prompt is too long: [0-9]+ tokens > 10 maximum"));
}

TEST_F(Anthropic, CountsTokens) {
  message(kTools);
  const auto reply = post("/v1/messages/count_tokens",
                          R"({"model":"minnow","messages":[{"role":"user","content":"Hi"}])" +
                              std::string(kTools) + "}");
  EXPECT_EQ(reply->json().at("input_tokens").to_number<size_t>(), asked().prompt.size());
  api_->attach(nullptr);
  EXPECT_EQ(post("/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":"Hi"}]})")
                ->status(),
            200);
}

TEST_F(Anthropic, RefusesInItsOwnShape) {
  const std::pair<const char*, int> table[] = {
      {R"({"max_tokens":5})", 400},
      {R"({"messages":[{"role":"user","content":"Hi"}]})", 400},
      {R"({"max_tokens":0,"messages":[{"role":"user","content":"Hi"}]})", 400},
      {R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"image"}]}]})", 400},
      {R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"new_thing"}]}]})", 400},
      {R"({"max_tokens":5,"messages":[{"role":"king","content":"Hi"}]})", 400},
      {R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"weather"}]})",
       400},
      {R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"}],"tool_choice":{"type":"tool","name":"x"}})",
       400},
      {R"({"model":"claude-9","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]})", 404},
      {R"(nonsense)", 400},
  };
  for (const auto& [body, status] : table) {
    const auto reply = post("/v1/messages", body);
    EXPECT_EQ(reply->status(), status) << body;
    EXPECT_EQ(reply->json().at("type"), "error") << body;
    EXPECT_EQ(reply->json().at("error").at("type"),
              status == 404 ? "not_found_error" : "invalid_request_error");
  }
  engine_.refusal = Refusal{Refusal::Kind::queue_full, "full"};
  EXPECT_EQ(message()->json().at("error").at("type"), "rate_limit_error");
  engine_.refusal = Refusal{Refusal::Kind::stopping, "stop"};
  EXPECT_EQ(message()->json().at("error").at("type"), "overloaded_error");
}

TEST_F(Anthropic, NamesWhatWasSentWhenItRefuses) {
  const std::string hi =
      R"({"max_tokens":5,"system":"s","messages":[{"role":"user","content":"Hi"})";
  const std::pair<const char*, const char*> table[] = {
      {R"(],"tools":[{"input_schema":{}}])", "'tools[0]' must have a 'name'"},
      {R"(],"tools":[{"name":"a","input_schema":{}},{"name":"b"}])", "'tools[1]' must have"},
      {R"(,{"role":"user","content":[{"type":"document","source":{"type":"base64"}}]}])",
       "'messages[1].content' holds a block of type 'document': this model reads text only"},
      {R"(,{"role":"user","content":[{"type":"tool_result","content":[{"text":"a"}]}]}])",
       "'messages[1].content' holds a tool result with something that is no block"},
      {R"(,{"role":"assistant","content":[{"type":"tool_use"}]}])",
       "'messages[1].content' holds a 'tool_use' block without a 'name'"},
  };
  for (const auto& [members, expected] : table) {
    const auto reply = post("/v1/messages", hi + members + "}");
    EXPECT_EQ(reply->status(), 400) << members;
    EXPECT_THAT(reply->body(), HasSubstr(expected));
  }
}

TEST_F(Anthropic, TellsOfFailuresBehindTheHead) {
  const auto reply = message(R"(,"stream":true)");
  engine_.say(0, "a");
  engine_.ending.failure = Error{"the engine broke"};
  engine_.end(0, 1, FinishReason::cancelled);
  EXPECT_THAT(reply->body(),
              ::testing::EndsWith(
                  "event: error\ndata: {\"type\": \"error\", \"error\": {\"type\": \"api_error\", "
                  "\"message\": \"the engine broke\"}}\n\n"));
}

}  // namespace
}  // namespace slip
