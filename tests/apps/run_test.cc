#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slipstream/common/numbers.h"
#include "slipstream/common/terminal_text.h"
#include "slipstream/common/terminal_wrap.h"
#include "slipstream/completions/script.h"
#include "slipstream/inspect/report.h"
#include "slipstream/run/model.h"
#include "slipstream/run/options.h"
#include "slipstream/run/printer.h"
#include "slipstream/run/stats.h"

namespace slip {
namespace {

using Kind = OutputEvent::Kind;

TEST(RunOptions, ALoneWordIsAModelOrAPrompt) {
  EXPECT_TRUE(names_a_model("minnow"));
  EXPECT_TRUE(names_a_model("/tmp"));
  EXPECT_TRUE(names_a_model("./not-there"));
  EXPECT_TRUE(names_a_model("Qwen/Qwen3.5-35B-A3B"));
  EXPECT_TRUE(names_a_model("Qwen/Qwen3.5-35B-A3B@main"));
  EXPECT_FALSE(names_a_model("Hello"));
  EXPECT_FALSE(names_a_model("Is this and/or that?"));
  EXPECT_FALSE(names_a_model("Tell me a story."));

  RunOptions prompt;
  prompt.first = "Tell me a story.";
  ASSERT_TRUE(prompt.settle().ok());
  EXPECT_EQ(prompt.model.model, "");
  EXPECT_EQ(prompt.second, "Tell me a story.");
  RunOptions both;
  both.first = "some folder";
  both.second = "Why?";
  ASSERT_TRUE(both.settle().ok());
  EXPECT_EQ(both.model.model, "some folder");
  EXPECT_EQ(both.second, "Why?");
  RunOptions flag;
  flag.model.model = "/models/x";
  flag.first = "minnow";
  ASSERT_TRUE(flag.settle().ok());
  EXPECT_EQ(flag.second, "minnow");
}

TEST(SamplingFlags, ChangeWhatTheModelsMakersWant) {
  GenerationDefaults defaults;
  defaults.sampling.temperature = 0.7f;
  defaults.sampling.top_k = 20;
  defaults.stop_ids = {7};
  SamplingFlags flags;
  flags.top_p = 0.5;
  flags.logit_bias = {"3=-1.5"};
  flags.seed = 9;
  ASSERT_TRUE(flags.check().ok());
  const GenerateRequest request = flags.request(defaults);
  EXPECT_EQ(request.sampling.temperature, 0.7f);
  EXPECT_EQ(request.sampling.top_k, 20);
  EXPECT_EQ(request.sampling.top_p, 0.5f);
  EXPECT_EQ(request.sampling.seed, 9u);
  EXPECT_EQ(request.sampling.logit_bias, (std::vector<std::pair<int32_t, float>>{{3, -1.5f}}));
  EXPECT_EQ(request.stop_ids, std::vector<int32_t>{7});
  flags.greedy = flags.ignore_eos = true;
  EXPECT_TRUE(flags.request(defaults).sampling.greedy());
  EXPECT_TRUE(flags.request(defaults).stop_ids.empty());
  for (const char* wrong : {"", "x", "3", "=1", "-1=2", "3=", "3=a", "3=1x"}) {
    flags.logit_bias = {wrong};
    EXPECT_FALSE(flags.check().ok()) << wrong;
  }
}

std::string printed(const PrintStyle& style, const std::vector<OutputEvent>& events) {
  std::string out;
  AnswerPrinter printer(style, [&](std::string_view text) {
    out += text;
    return true;
  });
  for (const OutputEvent& event : events) printer.print(event);
  printer.finish();
  return out;
}

TEST(AnswerPrinter, KeepsThoughtsApart) {
  const std::vector<OutputEvent> events = {
      {Kind::reasoning, "I th"}, {Kind::reasoning, "ink.\n"}, {Kind::content, "Yes."}};
  PrintStyle style;
  EXPECT_EQ(printed(style, events), "Yes.\n");
  style.thoughts = ThoughtStyle::tagged;
  EXPECT_EQ(printed(style, events), "<think>\nI think.\n</think>\n\nYes.\n");
  style.thoughts = ThoughtStyle::dimmed;
  style.styles = Styles(true);
  EXPECT_EQ(printed(style, events), "\033[2mI think.\n\033[0m\nYes.\n");
  // Cut off inside: the style is ended all the same.
  EXPECT_EQ(printed(style, {{Kind::reasoning, "I"}}), "\033[2mI\033[0m\n");
}

TEST(AnswerPrinter, ATerminalGetsNoControlCharactersFromTheModel) {
  PrintStyle style;
  const std::vector<OutputEvent> events = {{Kind::content,
                                            "a\033]0;title\007b\xC2\x9B"
                                            "c\r\n\td"}};
  EXPECT_EQ(printed(style, events),
            "a\033]0;title\007b\xC2\x9B"
            "c\r\n\td\n");
  style.to_terminal = true;
  EXPECT_EQ(printed(style, events), "a]0;titlebc\n\td\n");
}

TEST(AnswerPrinter, NoticesThatNobodyReads) {
  int calls = 0;
  AnswerPrinter printer({}, [&](std::string_view) { return ++calls < 2; });
  printer.print({Kind::content, "a"});
  EXPECT_FALSE(printer.reader_gone());
  printer.print({Kind::content, "b"});
  EXPECT_TRUE(printer.reader_gone());
  printer.print({Kind::content, "c"});
  EXPECT_EQ(calls, 2);
}

TEST(WordWrap, BreaksBetweenWords) {
  const std::string text =
      "The quick brown fox jumps\nover 日本語日本語 it.\n```\nlong code line stays\n```\n"
      "an-extremely-long-word here";
  const std::string expected =
      "The quick\nbrown fox\njumps\nover 日本\n語日本語\nit.\n```\nlong code line stays\n```\n"
      "an-extremely-long-word here";
  WordWrap whole(10);
  std::string out = whole.push(text);
  EXPECT_EQ(out + whole.finish(), expected);
  // However the text is cut.
  WordWrap pieces(10);
  out.clear();
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = next_character(text, at);
    out += pieces.push(std::string_view(text).substr(at, end - at));
  }
  EXPECT_EQ(out + pieces.finish(), expected);
}

TEST(TerminalText, CountsColumns) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("é日本"), 5);
  EXPECT_EQ(display_width("e\xCC\x81"), 1);
  EXPECT_EQ(display_width("👩‍👩‍👧"), 2);
  EXPECT_EQ(display_width("❤️"), 2);
}

TEST(Stats, NumbersAreReadable) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(describe_rate(1234.4), "1,234");
  EXPECT_EQ(describe_rate(12.34), "12.3");
  EXPECT_EQ(describe_rate(1.234), "1.23");
  GenerateResult result;
  result.ids.resize(87);
  result.decode_seconds = 0.087;
  result.prompt_tokens = 19;
  result.prompt_seconds = 0.01;
  EXPECT_EQ(describe_stats(
                result,
                {.bytes_per_token = 14.9e6, .bytes_per_second = 18.4e9, .share_of_bandwidth = 0.61},
                0.12),
            "87 tokens, 1,000 tok/s · prompt 19 tokens, 1,900 tok/s · loaded in 0.12 s · "
            "14.9 MB/token, 18.4 GB/s, 61 % of the measured memory bandwidth");
}

TEST(Inspect, TellsWhatTensorsAreFor) {
  const std::string layer = "model.language_model.layers.3.";
  EXPECT_EQ(class_of_tensor("model.language_model.embed_tokens.weight"), TensorClass::embedding);
  EXPECT_EQ(class_of_tensor("lm_head.weight"), TensorClass::head);
  EXPECT_EQ(class_of_tensor(layer + "self_attn.q_proj.qweight"), TensorClass::attention);
  EXPECT_EQ(class_of_tensor(layer + "self_attn.q_norm.weight"), TensorClass::norms);
  EXPECT_EQ(class_of_tensor(layer + "linear_attn.in_proj_qkv.qweight"), TensorClass::delta_net);
  EXPECT_EQ(class_of_tensor(layer + "mlp.experts.7.up_proj.scales"), TensorClass::routed_experts);
  EXPECT_EQ(class_of_tensor(layer + "mlp.experts.gate_up_proj"), TensorClass::routed_experts);
  EXPECT_EQ(class_of_tensor(layer + "mlp.shared_expert.up_proj.weight"),
            TensorClass::shared_experts);
  EXPECT_EQ(class_of_tensor(layer + "mlp.shared_expert_gate.weight"), TensorClass::shared_experts);
  EXPECT_EQ(class_of_tensor(layer + "mlp.gate.weight"), TensorClass::router);
  EXPECT_EQ(class_of_tensor(layer + "mlp.gate_proj.weight"), TensorClass::mlp);
  EXPECT_EQ(class_of_tensor("mtp.layers.0.mlp.gate.weight"), TensorClass::mtp);
  EXPECT_EQ(class_of_tensor("model.visual.blocks.0.attn.qkv.weight"), TensorClass::vision);
}

TEST(TalkingModel, SeesWhetherThePromptEndsInThoughts) {
  EXPECT_TRUE(ends_in_thoughts(kQwenOutput, "<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(ends_in_thoughts(kQwenOutput, "<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(ends_in_thoughts(kQwenOutput, ""));
}

TEST(Completions, RefuseOtherShells) {
  EXPECT_FALSE(completion_script("tcsh", {}).ok());
  const std::string script =
      completion_script("fish", {{"run", "it's good", {"--model", "-m"}}}).value();
  EXPECT_THAT(script, testing::HasSubstr("-d 'it'\\''s good'"));
  EXPECT_THAT(script, testing::HasSubstr("-l model"));
  EXPECT_THAT(script, testing::HasSubstr("-s m"));
}

}  // namespace
}  // namespace slip
