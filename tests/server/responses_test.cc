// /v1/responses.
#include <gmock/gmock.h>

#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Responses : public ApiTest {
 protected:
  std::shared_ptr<RecordedReply> respond(const std::string& members) {
    return post("/v1/responses", "{" + members + "}");
  }
};

const char kTools[] = R"(,"tools":[{"type":"function","name":"weather","strict":true,"parameters":)"
                      R"({"type":"object","properties":{"city":{"type":"string"}}}},)"
                      R"({"type":"web_search"}])";

TEST_F(Responses, RepliesInOnePiece) {
  const auto reply = respond(R"("input":"Hi","instructions":"Be brief.","max_output_tokens":9)");
  EXPECT_EQ(prompt_text(),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n");
  EXPECT_EQ(asked().max_tokens, 9);
  engine_.ending.cached_tokens = 4;
  engine_.answer(0, {"hm", "</think>", "Hello"});
  const JsonObject body = reply->json();
  EXPECT_EQ(body.at("object"), "response");
  EXPECT_EQ(body.at("status"), "completed");
  EXPECT_EQ(body.at("instructions"), "Be brief.");
  EXPECT_EQ(body.at("output").at(0).at("type"), "reasoning");
  EXPECT_EQ(body.at("output").at(0).at("content").at(0).at("text"), "hm");
  EXPECT_EQ(body.at("output").at(1).at("type"), "message");
  EXPECT_EQ(body.at("output").at(1).at("content").at(0).at("text"), "Hello");
  EXPECT_EQ(body.at("usage").at("input_tokens_details").at("cached_tokens").to_number<int>(), 4);
  EXPECT_EQ(body.at("usage").at("output_tokens_details").at("reasoning_tokens").to_number<int>(),
            2);
}

TEST_F(Responses, StreamsEvents) {
  const auto reply = respond(R"("input":"Hi","stream":true)" + std::string(kTools));
  engine_.answer(0, {"hm", "</think>", "Look", ":", "\n<tool_call>\n<function=weather>\n",
                     "<parameter=city>\nRome\n</parameter>\n", "</function>\n</tool_call>"});
  std::vector<std::string> names;
  std::string arguments, text;
  int64_t number = 0;
  for (const JsonObject& event : reply->events()) {
    EXPECT_EQ(event.at("sequence_number").to_number<int64_t>(), number++);
    const std::string name(event.at("type").get_string());
    EXPECT_THAT(reply->body(), HasSubstr("event: " + name + "\n"));
    if (name == "response.function_call_arguments.delta")
      arguments += std::string_view(event.at("delta").get_string());
    if (name == "response.output_text.delta")
      text += std::string_view(event.at("delta").get_string());
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  EXPECT_THAT(
      names,
      ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                  "response.content_part.added", "response.reasoning_text.delta",
                  "response.reasoning_text.done", "response.content_part.done",
                  "response.output_item.done", "response.output_item.added",
                  "response.content_part.added", "response.output_text.delta",
                  "response.output_text.done", "response.content_part.done",
                  "response.output_item.done", "response.output_item.added",
                  "response.function_call_arguments.delta", "response.function_call_arguments.done",
                  "response.output_item.done", "response.completed"));
  EXPECT_EQ(text, "Look:");
  EXPECT_EQ(parse_json(arguments, "").value(), (JsonObject{{"city", "Rome"}}));
  const JsonObject last = reply->events().back();
  const Json call = last.at("response").at("output").at(2);
  EXPECT_EQ(call.at("type"), "function_call");
  EXPECT_EQ(call.at("name"), "weather");
  EXPECT_EQ(call.at("arguments"), Json(arguments));
  EXPECT_TRUE(reply->ended());
}

TEST_F(Responses, SaysWhenItWasCutShort) {
  const auto reply = respond(R"("input":"Hi","stream":true)");
  engine_.answer(0, {"hm"}, FinishReason::max_tokens);
  const JsonObject last = reply->events().back();
  EXPECT_EQ(last.at("type"), "response.incomplete");
  EXPECT_EQ(last.at("response").at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(last.at("response").at("output").at(0).at("status"), "incomplete");
}

TEST_F(Responses, ReadsItemsOfAllKinds) {
  respond(R"("input":[
      {"role":"developer","content":"One."},
      {"type":"message","role":"user","content":[{"type":"input_text","text":"Weather?"}]},
      {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Look."}]},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"A moment."}]},
      {"type":"function_call","call_id":"c1","name":"weather","arguments":"{\"city\":\"Rome\"}"},
      {"type":"function_call_output","call_id":"c1","output":"sunny"}])");
  EXPECT_EQ(prompt_text(),
            "<|im_start|>system\nOne.<|im_end|>\n<|im_start|>user\nWeather?<|im_end|>\n"
            "<|im_start|>assistant\n<think>\nLook.\n</think>\n\nA moment.\n\n<tool_call>\n"
            "<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>"
            "<|im_end|>\n<|im_start|>user\n<tool_response>\nsunny\n</tool_response><|im_end|>\n"
            "<|im_start|>assistant\n<think>\n");
}

TEST_F(Responses, NotesPicturesInACallsOutput) {
  respond(R"("input":[{"role":"user","content":"Look."},
      {"type":"function_call","call_id":"c1","name":"view_image","arguments":"{}"},
      {"type":"function_call_output","call_id":"c1","output":[
        {"type":"input_image","image_url":"data:x"}]}])");
  EXPECT_THAT(prompt_text(), HasSubstr("<tool_response>\n[left out: input_image; only text can be "
                                       "read here]\n</tool_response>"));
}

TEST_F(Responses, PassesOverWhatRanElsewhere) {
  respond(R"("input":[{"role":"user","content":"News?"},
      {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search"}},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"None."}]},
      {"role":"user","content":"Hm."}])");
  EXPECT_THAT(prompt_text(), HasSubstr("News?<|im_end|>\n<|im_start|>assistant\nNone.<|im_end|>"));
}

TEST_F(Responses, LeavesOutToolsThatRunElsewhere) {
  respond(R"("input":"Hi")" + std::string(kTools));
  EXPECT_THAT(prompt_text(), HasSubstr("\"weather\""));
  EXPECT_THAT(prompt_text(), ::testing::Not(HasSubstr("web_search")));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("web_search"));
}

// As Codex sends its MCP servers and apply_patch.
const char kCodexTools[] =
    R"(,"tools":[{"type":"namespace","name":"mcp__files","description":"d","tools":[)"
    R"({"type":"function","name":"read","parameters":{"type":"object","properties":)"
    R"({"path":{"type":"string"}}}},{"type":"web_search"}]},)"
    R"({"type":"custom","name":"apply_patch","description":"Edits files.",)"
    R"("format":{"type":"grammar","syntax":"lark","definition":"start: patch"}}])";
const char kReadCall[] =
    "<tool_call>\n<function=mcp__files.read>\n<parameter=path>\na.txt\n</parameter>\n</function>\n"
    "</tool_call>";
const char kPatchCall[] =
    "<tool_call>\n<function=apply_patch>\n<parameter=input>\n*** Begin\n\"x\"\n</parameter>\n"
    "</function>\n</tool_call>";

TEST_F(Responses, GivesCallsBackInTheirNamespaces) {
  const auto reply = respond(R"("input":"Hi")" + std::string(kCodexTools));
  EXPECT_THAT(prompt_text(), HasSubstr("\"mcp__files.read\""));
  EXPECT_THAT(prompt_text(), HasSubstr("The input follows this grammar:\\nstart: patch"));
  engine_.answer(0, {"</think>", kReadCall, "\n", kPatchCall});
  const JsonObject body = reply->json();
  const Json& read = body.at("output").at(0);
  EXPECT_EQ(read.at("type"), "function_call");
  EXPECT_EQ(read.at("namespace"), "mcp__files");
  EXPECT_EQ(read.at("name"), "read");
  EXPECT_EQ(read.at("arguments"), R"({"path": "a.txt"})");
  const Json& patch = body.at("output").at(1);
  EXPECT_EQ(patch.at("type"), "custom_tool_call");
  EXPECT_EQ(patch.at("name"), "apply_patch");
  EXPECT_EQ(patch.at("input"), "*** Begin\n\"x\"");
  EXPECT_FALSE(patch.as_object().contains("namespace"));
}

TEST_F(Responses, StreamsCallsInTheirNamespaces) {
  const auto reply = respond(R"("input":"Hi","stream":true)" + std::string(kCodexTools));
  engine_.answer(0, {"</think>", kReadCall, "\n", kPatchCall});
  std::vector<std::string> seen;
  for (const JsonObject& event : reply->events()) {
    const std::string type(event.at("type").get_string());
    if (type == "response.custom_tool_call_input.delta")
      seen.emplace_back(event.at("delta").get_string());
    if (type == "response.custom_tool_call_input.done")
      seen.emplace_back(event.at("input").get_string());
    if (const Json* item = event.if_contains("item"))
      seen.push_back(cat(text_or_empty(&item->at("type")), " ", text_or_empty(&item->at("name"))));
  }
  const std::string patch = "*** Begin\n\"x\"";
  EXPECT_THAT(
      seen, ElementsAre("function_call read", "function_call read", "custom_tool_call apply_patch",
                        patch, patch, "custom_tool_call apply_patch"));
  const Json output = reply->events().back().at("response").at("output");
  EXPECT_EQ(output.at(0).at("namespace"), "mcp__files");
  EXPECT_EQ(output.at(1).at("input"), Json(patch));
}

TEST_F(Responses, ReadsEarlierCallsUnderTheNamesOfTheModel) {
  respond(R"("input":[{"role":"user","content":"Edit."},
      {"type":"function_call","call_id":"c1","namespace":"mcp__files","name":"read","arguments":"{\"path\":\"a.txt\"}"},
      {"type":"function_call_output","call_id":"c1","output":"text"},
      {"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin\n\"x\""},
      {"type":"custom_tool_call_output","call_id":"c2","output":"done"}])");
  EXPECT_THAT(prompt_text(), HasSubstr(kReadCall));
  EXPECT_THAT(prompt_text(), HasSubstr(kPatchCall));
  EXPECT_THAT(prompt_text(), HasSubstr("<tool_response>\ndone\n</tool_response>"));
}

TEST_F(Responses, EnforcesAToolThatTakesAText) {
  respond(R"("input":"Hi","reasoning":{"effort":"none"},"tool_choice":{"type":"custom","name":)"
          R"("apply_patch"})" +
          std::string(kCodexTools));
  const std::unique_ptr<Constraint> form = asked().constraint->clone();
  for (const int32_t id : tokenizer().encode(kPatchCall)) {
    ASSERT_TRUE(form->allows(id)) << tokenizer().token_bytes(id);
    form->advance(id);
  }
}

TEST_F(Responses, LeavesAChoiceOfSuchToolsToTheModel) {
  const std::string offered = R"("input":"Hi","tools":[{"type":"web_search"}],"tool_choice":)";
  for (const char* choice :
       {R"("required")", R"({"type":"web_search"})", R"({"type":"custom","name":"x"})",
        R"({"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}]})"}) {
    const size_t before = engine_.taken.size();
    const auto reply = respond(offered + choice);
    EXPECT_EQ(reply->status(), 0) << choice << " " << reply->body();
    ASSERT_EQ(engine_.taken.size(), before + 1);
    EXPECT_EQ(asked().constraint, nullptr) << choice;
  }
  EXPECT_THAT(notes_, ::testing::Contains(HasSubstr("tool_choice: web_search")));
  EXPECT_EQ(respond(R"("input":"Hi","tools":[],"tool_choice":"required")")->status(), 400);
}

TEST_F(Responses, ShowsTheToolsThatAreAllowed) {
  respond(R"("input":"Hi","tools":[{"type":"function","name":"weather"},)"
          R"({"type":"function","name":"clock"}],"tool_choice":{"type":"allowed_tools",)"
          R"("mode":"auto","tools":[{"type":"function","name":"clock"},{"type":"web_search"}]})");
  EXPECT_THAT(prompt_text(), HasSubstr("clock"));
  EXPECT_THAT(prompt_text(), ::testing::Not(HasSubstr("weather")));
  respond(R"("input":"Hi","tools":[{"type":"function","name":"weather"},)"
          R"({"type":"custom","name":"patch"}],"tool_choice":{"type":"allowed_tools",)"
          R"("mode":"auto","tools":[{"type":"custom","name":"patch"}]})");
  EXPECT_THAT(prompt_text(), HasSubstr("patch"));
  EXPECT_THAT(prompt_text(), ::testing::Not(HasSubstr("weather")));
}

TEST_F(Responses, TakesNoLimitByTheNumberOthersWriteForIt) {
  respond(R"("input":"Hi","max_output_tokens":-1)");
  EXPECT_EQ(asked().max_tokens, -1);
}

TEST_F(Responses, EnforcesTheTextsFormat) {
  respond(R"("input":"Hi","reasoning":{"effort":"none"},"text":{"format":{"type":"json_schema",)"
          R"("name":"n","schema":{"type":"object","properties":{}}}})");
  ASSERT_NE(asked().constraint, nullptr);
  EXPECT_FALSE(asked().constraint->allows(tokenizer().encode("Hello")[0]));
}

TEST_F(Responses, RefusesWhatNeedsMemory) {
  const std::pair<const char*, const char*> table[] = {
      {R"("input":"Hi","previous_response_id":"resp_1")", "previous_response_id"},
      {R"("input":"Hi","conversation":"c")", "conversation"},
      {R"("input":"Hi","background":true)", "background"},
      {R"("input":"Hi","prompt":{"id":"p"})", "prompt"},
      {R"("input":[{"type":"item_reference","id":"x"}])", "input[0]"},
      {R"("input":[{"type":"computer_call"}])", "input[0].type"},
      {R"("input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}])",
       "input[0].content"},
      {R"("instructions":"Hi","input":[{"role":"king","content":"a"}])", "input[0].role"},
      {R"("input":[{"role":"user"}])", "input[0]"},
      {R"("input":[{"type":"function_call","arguments":"{}"}])", "input[0].name"},
      {R"("input":[{"type":"function_call_output","output":[{}]}])", "input[0].output"},
      {R"("input":[])", "input"},
      {R"("input":"Hi","tools":[{"type":"web_search"},{"type":"function"}])", "tools[1].name"},
      {R"("input":"Hi","tools":[3])", "tools[0].name"},
      {R"("input":"Hi","tools":[{"type":"namespace","name":"a"}])", "tools[0]"},
      {R"("input":"Hi","tools":[{"type":"namespace","name":"a","tools":[{}]}])",
       "tools[0].tools[0].name"},
      {R"("input":"Hi","tools":[{"type":"function","name":"f","parameters":3}])",
       "tools[0].parameters"},
      {R"("model":"minnow")", "input"},
      {R"("input":"Hi","max_output_tokens":0)", "max_output_tokens"},
      {R"("input":"Hi","reasoning":{"effort":"huge"})", "reasoning.effort"},
  };
  for (const auto& [members, param] : table) {
    const auto reply = respond(members);
    EXPECT_EQ(reply->status(), 400) << members;
    EXPECT_EQ(reply->json().at("error").at("param"), param) << members << " " << reply->body();
  }
}

TEST_F(Responses, NamesTheInputWhenAPromptIsRefused) {
  engine_.context_length = 10;
  EXPECT_EQ(respond(R"("input":"Hi")")->json().at("error").at("param"), "input");
}

}  // namespace
}  // namespace slip
