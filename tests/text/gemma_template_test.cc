// The built-in template for Gemma 4, alone and against the published one.
#include "text/gemma_template.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "text/chat_template.h"

namespace slip {
namespace {

JsonArray array_of(const std::string& text) { return parse_json(text, "test").value().get_array(); }

std::string render(const std::string& messages, const std::string& tools = "[]",
                   JsonObject flags = {}) {
  ChatTemplate::Request request;
  request.messages = array_of(messages);
  request.tools = array_of(tools);
  request.flags = std::move(flags);
  const Result<std::string> text =
      ChatTemplate::from_text(std::string(kGemmaTemplate), "built in").value().render(request);
  return text.ok() ? text.value() : "refused: " + text.failure().message;
}

constexpr const char* kTools = R"([{"type": "function", "function": {"name": "book",
    "description": "Book a \"table\".", "parameters": {"type": "object", "properties": {
      "time": {"type": "string", "description": "When", "enum": ["noon", "eve"]},
      "Guests": {"type": "array", "items": {"type": "object", "required": ["name"],
          "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}},
      "dishes": {"type": "array", "items": {"type": "string"}},
      "place": {"type": "object", "description": "Where", "properties":
          {"lat": {"type": "number"}, "lon": {"type": "number", "nullable": true}},
          "required": ["lat"]},
      "smoke": {"type": "boolean"}}, "required": ["time", "Guests"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time.",
     "parameters": {"type": "object", "properties": {}}}}])";

TEST(GemmaTemplate, Turns) {
  EXPECT_EQ(render(R"([{"role": "user", "content": " Hi \n"}])"),
            "<bos><|turn>user\nHi<turn|>\n<|turn>model\n");
  EXPECT_EQ(render(R"([{"role": "developer", "content": "Be brief."},
                       {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                       {"role": "assistant", "content": "<|channel>thought\nhm<channel|>Hello."},
                       {"role": "user", "content": "Bye"}])",
                   "[]", {{"enable_thinking", true}}),
            "<bos><|turn>system\n<|think|>\nBe brief.<turn|>\n<|turn>user\nHi<turn|>\n"
            "<|turn>model\nHello.<turn|>\n<|turn>user\nBye<turn|>\n<|turn>model\n");
}

TEST(GemmaTemplate, Declarations) {
  EXPECT_EQ(
      render(R"([{"role": "user", "content": "x"}])", kTools),
      "<bos><|turn>system\n<|tool>declaration:book{description:<|\"|>Book a \"table\".<|\"|>,"
      "parameters:{properties:{dishes:{items:{type:<|\"|>STRING<|\"|>},type:<|\"|>ARRAY<|\"|>},"
      "Guests:{items:{properties:{age:{type:<|\"|>INTEGER<|\"|>},name:{type:<|\"|>STRING<|\"|>}},"
      "required:[<|\"|>name<|\"|>],type:<|\"|>OBJECT<|\"|>},type:<|\"|>ARRAY<|\"|>},"
      "place:{description:<|\"|>Where<|\"|>,properties:{lat:{type:<|\"|>NUMBER<|\"|>},"
      "lon:{nullable:true,type:<|\"|>NUMBER<|\"|>}},required:[<|\"|>lat<|\"|>],"
      "type:<|\"|>OBJECT<|\"|>},smoke:{type:<|\"|>BOOLEAN<|\"|>},"
      "time:{description:<|\"|>When<|\"|>,enum:[<|\"|>noon<|\"|>,<|\"|>eve<|\"|>],"
      "type:<|\"|>STRING<|\"|>}},required:[<|\"|>time<|\"|>,<|\"|>Guests<|\"|>],"
      "type:<|\"|>OBJECT<|\"|>}}<tool|><|tool>declaration:now{description:<|\"|>The time.<|\"|>,"
      "parameters:{type:<|\"|>OBJECT<|\"|>}}<tool|><turn|>\n<|turn>user\nx<turn|>\n"
      "<|turn>model\n");
}

TEST(GemmaTemplate, CallsAndResponsesAreOneTurn) {
  const std::string call =
      R"({"role": "user", "content": "go"}, {"role": "assistant", "reasoning_content": "let me see",
          "content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "book",
          "arguments": {"time": "noon", "n": 2, "ok": true, "none": null, "list": [1, {"k": "v"}]}}}]})";
  const std::string start =
      "<bos><|turn>user\ngo<turn|>\n<|turn>model\n<|channel>thought\nlet me see\n<channel|>"
      "<|tool_call>call:book{list:[1,{k:<|\"|>v<|\"|>}],n:2,none:null,ok:true,"
      "time:<|\"|>noon<|\"|>}<tool_call|>";
  EXPECT_EQ(render("[" + call + "]"), start + "<|tool_response>");
  const std::string answered =
      "[" + call + R"(, {"role": "tool", "tool_call_id": "1", "content": "done"})";
  const std::string response =
      start + "<|tool_response>response:book{value:<|\"|>done<|\"|>}<tool_response|>";
  EXPECT_EQ(render(answered + "]"), response);
  EXPECT_EQ(render(answered + R"(, {"role": "assistant", "content": "Booked."}])"),
            response + "Booked.<turn|>\n<|turn>model\n");
  EXPECT_EQ(render("[" + call + R"(, {"role": "tool", "tool_call_id": "1",
                   "content": {"b": 1, "a": "x"}}])"),
            start + "<|tool_response>response:book{a:<|\"|>x<|\"|>,b:1}<tool_response|>");
}

TEST(GemmaTemplate, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(render("[]"), "refused: there are no messages");
  EXPECT_EQ(render(R"([{"role": "bard", "content": "la"}])"), "refused: there is no role \"bard\"");
}

TEST(GemmaTemplate, IsUsedWhereARepositoryHasNone) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / cat("slip_gemma_template_", ::getpid());
  std::filesystem::create_directories(folder);
  ChatTemplate::Request request;
  request.messages = array_of(R"([{"role": "user", "content": "Hi"}])");
  EXPECT_FALSE(ChatTemplate::load(folder).ok()) << "for Qwen there is none";
  EXPECT_EQ(ChatTemplate::load(folder, kGemmaOutput).value().render(request).value(),
            "<bos><|turn>user\nHi<turn|>\n<|turn>model\n");
  std::ofstream(folder / "chat_template.jinja") << "own";
  EXPECT_EQ(ChatTemplate::load(folder, kGemmaOutput).value().render(request).value(), "own");
  std::filesystem::remove_all(folder);
}

TEST(GemmaTemplate, WritesWhatThePublishedOneWrites) {
  const std::filesystem::path path = SLIP_SHARED_DIR "/templates/gemma-4-31b-it.jinja";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "NOT TESTED: no " << path;
  const ChatTemplate published =
      ChatTemplate::from_text(read_text_file(path).value(), "published").value();
  const std::string call = R"({"role": "assistant", "content": "", "tool_calls": [
      {"id": "a", "type": "function", "function": {"name": "book", "arguments":
       "{\"time\": \"noon\", \"Guests\": [{\"name\": \"Bo\"}], \"smoke\": false}"}},
      {"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}}]})";
  const std::string answers = R"({"role": "tool", "tool_call_id": "a", "content": "ok"},
      {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "12:00"}]})";
  const std::string user = R"({"role": "user", "content": " Hello "})";
  const std::string system = R"({"role": "system", "content": " Be kind. "})";
  for (const std::string& messages :
       {user, system + "," + user, user + "," + call, user + "," + call + "," + answers,
        system + "," + user + "," + call + "," + answers + R"(,{"role": "assistant", "content":
            "Done."},)" +
            user})
    for (const char* tools : {"[]", kTools})
      for (const bool thinks : {false, true}) {
        ChatTemplate::Request request;
        request.messages = array_of("[" + messages + "]");
        request.tools = array_of(tools);
        request.flags = {{"enable_thinking", thinks}, {"bos_token", "<bos>"}};
        std::string expected = published.render(request).value();
        // The big models' template; see gemma_template.cc.
        constexpr std::string_view kEmptyThought = "<|channel>thought\n<channel|>";
        if (expected.ends_with(kEmptyThought))
          expected.resize(expected.size() - kEmptyThought.size());
        EXPECT_EQ(render("[" + messages + "]", tools, {{"enable_thinking", thinks}}), expected)
            << messages;
      }
}

}  // namespace
}  // namespace slip
