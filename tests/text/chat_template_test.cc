#include "text/chat_template.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/files.h"
#include "text/gemma_template.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

JsonArray array_of(const std::string& text) { return parse_json(text, "test").value().get_array(); }

ChatTemplate template_of(const std::string& text) {
  return ChatTemplate::from_text(text, "test").value();
}

ChatTemplate minnow() { return ChatTemplate::load(SLIP_SOURCE_DIR "/models/minnow").value(); }

TEST(ChatTemplate, RendersTheGoldens) {
  const ChatTemplate chat = minnow();
  const std::string path = SLIP_SOURCE_DIR "/tests/data/chat/render.json";
  const Json goldens = parse_json(read_text_file(path).value(), path).value();
  ASSERT_EQ(goldens.get_array().size(), 28u);
  for (const Json& golden : goldens.get_array()) {
    const JsonObject& test = golden.get_object();
    SCOPED_TRACE(std::string(test.at("name").get_string()));
    ChatTemplate::Request request;
    request.messages = test.at("messages").get_array();
    if (const Json* tools = test.if_contains("tools")) request.tools = tools->get_array();
    request.flags = test.at("flags").get_object();
    const Result<std::string> result = chat.render(request);
    if (const Json* expected = test.if_contains("expect")) {
      ASSERT_TRUE(result.ok()) << result.failure().message;
      EXPECT_EQ(result.value(), expected->get_string());
    } else {
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.failure().message, test.at("error").get_string());
    }
  }
}

// An agent's session: a question and many calls, each answered.
JsonArray long_session(int messages) {
  JsonArray all = array_of(R"([{"role": "user", "content": "go"}])");
  const JsonArray pair = array_of(
      R"([{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function",
           "function": {"name": "f", "arguments": {"path": "a.cc", "line": 3}}}]},
          {"role": "tool", "tool_call_id": "1", "content": "int main() {}"}])");
  while (int(all.size()) < messages) all.insert(all.end(), pair.begin(), pair.end());
  return all;
}

TEST(ChatTemplate, LongSessionsTakeStepsInProportion) {
  for (const std::string& text :
       {read_text_file(SLIP_SOURCE_DIR "/models/minnow/chat_template.jinja").value(),
        std::string(kGemmaTemplate)}) {
    const jinja::Template parsed = jinja::Template::parse(text, "test").value();
    const JsonObject context = {
        {"messages", long_session(3000)}, {"tools", nullptr}, {"add_generation_prompt", true}};
    const Result<std::string> result = parsed.render(context, {.steps = 3000 * 500});
    EXPECT_TRUE(result.ok()) << result.failure().message;
  }
}

// Gemma's looks at all messages for each of them.
TEST(ChatTemplate, PublishedTemplatesRenderLongSessions) {
  for (const char* name : {"qwen3.5.jinja", "gemma-4-31b-it.jinja"}) {
    const fs::path path = fs::path(SLIP_SHARED_DIR "/templates") / name;
    if (!fs::exists(path)) GTEST_SKIP() << "NOT TESTED: no " << path;
    ChatTemplate::Request request;
    request.messages = long_session(2000);
    request.flags = {{"bos_token", "<bos>"}};
    const Result<std::string> result = template_of(read_text_file(path).value()).render(request);
    EXPECT_TRUE(result.ok()) << result.failure().message;
  }
}

TEST(ChatTemplate, ArgumentsGivenAsTextRenderLikeObjects) {
  const auto with_arguments = [](const std::string& arguments) {
    ChatTemplate::Request request;
    request.messages = array_of(
        R"([{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls":
            [{"type": "function", "function": {"name": "f", "arguments": )" +
        arguments + "}}]}]");
    const Result<std::string> result = minnow().render(request);
    return result.ok() ? result.value() : "error: " + result.failure().message;
  };
  const std::string expected = with_arguments(R"({"a": [1, "x"], "b": true})");
  EXPECT_NE(expected.find("<parameter=a>\n[1, \"x\"]\n</parameter>"), std::string::npos);
  EXPECT_EQ(with_arguments(R"("{\"a\": [1, \"x\"], \"b\": true}")"), expected);
  EXPECT_EQ(with_arguments(R"("")"), with_arguments("{}"));
  EXPECT_NE(with_arguments(R"("not json")").find("Can only get item pairs from a mapping."),
            std::string::npos);
}

TEST(ChatTemplate, FlagsBecomeVariablesAndWin) {
  ChatTemplate::Request request;
  request.flags["add_generation_prompt"] = false;
  request.flags["mood"] = "calm";
  EXPECT_EQ(template_of("{{ mood }} {{ add_generation_prompt }} {{ tools is none }} {{ other }}|")
                .render(request)
                .value(),
            "calm False True |");
}

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    // Of its own: tests of one binary run side by side.
    folder_ = fs::path(testing::TempDir()) / cat("slip_chat_template_test_", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  fs::path folder_;
};

TEST_F(ModelFolder, SpecialTokensBecomeVariables) {
  write("chat_template.jinja", "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}");
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": null})");
  EXPECT_EQ(ChatTemplate::load(folder_).value().render({}).value(), "<s></s>False");
}

TEST_F(ModelFolder, TheConfigMayHoldTheTemplate) {
  write("tokenizer_config.json", R"({"chat_template": "from config"})");
  EXPECT_EQ(ChatTemplate::load(folder_).value().render({}).value(), "from config");
}

TEST_F(ModelFolder, OfNamedTemplatesToolUseIsForTools) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "T"},
                                     {"name": "default", "template": "D"}]})");
  const ChatTemplate chat = ChatTemplate::load(folder_).value();
  EXPECT_EQ(chat.render({}).value(), "D");
  ChatTemplate::Request request;
  request.tools = array_of(R"([{"name": "f"}])");
  EXPECT_EQ(chat.render(request).value(), "T");
}

TEST_F(ModelFolder, FailuresSayWhatIsWrong) {
  const auto failure = [&] { return ChatTemplate::load(folder_).failure().message; };
  EXPECT_NE(failure().find("no chat_template"), std::string::npos);
  write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_NE(failure().find("expected a string or a list"), std::string::npos);
  write("chat_template.jinja", "\n{% if %}");
  EXPECT_NE(failure().find("chat_template.jinja line 2:"), std::string::npos);
}

// The published templates are not ours to copy; they lie beside the repository where we develop.
class PublishedTemplate : public testing::Test {
 protected:
  static std::optional<ChatTemplate> load(const std::string& name) {
    const fs::path path = fs::path(SLIP_SHARED_DIR) / "templates" / name;
    if (!fs::exists(path)) return std::nullopt;
    return ChatTemplate::from_text(read_text_file(path).value(), name).value();
  }

  static ChatTemplate::Request conversation() {
    ChatTemplate::Request request;
    request.messages = array_of(R"([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function",
         "function": {"name": "get_weather", "arguments": "{\"city\": \"Oslo\", \"days\": 2}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"}])");
    request.tools = array_of(R"([{"type": "function", "function": {"name": "get_weather",
        "description": "Weather.", "parameters": {"type": "object", "properties":
        {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}])");
    return request;
  }
};

TEST_F(PublishedTemplate, Qwen35) {
  const auto chat = load("qwen3.5.jinja");
  if (!chat) GTEST_SKIP() << "../shared/templates/qwen3.5.jinja is absent";
  const std::string text = chat->render(conversation()).value();
  EXPECT_TRUE(text.starts_with("<|im_start|>system\n# Tools")) << text;
  EXPECT_NE(text.find("<function=get_weather>\n<parameter=city>\nOslo\n</parameter>"),
            std::string::npos);
  EXPECT_TRUE(text.ends_with("<|im_start|>assistant\n<think>\n")) << text;
}

TEST_F(PublishedTemplate, Gemma4) {
  const auto chat = load("gemma-4-31b-it.jinja");
  if (!chat) GTEST_SKIP() << "../shared/templates/gemma-4-31b-it.jinja is absent";
  ChatTemplate::Request request = conversation();
  request.flags["bos_token"] = "<bos>";
  const std::string text = chat->render(request).value();
  EXPECT_EQ(text,
            "<bos><|turn>system\nBe brief.<|tool>declaration:get_weather{description:<|\"|>Weather."
            "<|\"|>,parameters:{properties:{city:{type:<|\"|>STRING<|\"|>},days:{type:<|\"|>INTEGER"
            "<|\"|>}},required:[<|\"|>city<|\"|>],type:<|\"|>OBJECT<|\"|>}}<tool|><turn|>\n"
            "<|turn>user\nWeather in Oslo?<turn|>\n<|turn>model\n<|tool_call>call:get_weather{city:"
            "<|\"|>Oslo<|\"|>,days:2}<tool_call|><|tool_response>response:get_weather{value:"
            "<|\"|>rain<|\"|>}<tool_response|>");
}

}  // namespace
}  // namespace slip
