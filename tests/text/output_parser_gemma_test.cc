// Gemma 4's channels and tool calls.
#include <gtest/gtest.h>

#include "text/output_parser.h"

namespace slip {
namespace {

// All events, joined where that makes no difference: "think[...]", "say[...]", "call NAME{...}".
std::string joined(const std::vector<OutputEvent>& events) {
  std::vector<OutputEvent> merged;
  for (const OutputEvent& event : events) add_event(merged, event);
  std::string text;
  for (const OutputEvent& event : merged) {
    switch (event.kind) {
      case OutputEvent::Kind::reasoning: text += "think[" + event.text + "]"; break;
      case OutputEvent::Kind::content: text += "say[" + event.text + "]"; break;
      case OutputEvent::Kind::tool_call_start: text += "call " + event.text; break;
      case OutputEvent::Kind::tool_call_arguments: text += event.text; break;
      case OutputEvent::Kind::tool_call_end: text += ";"; break;
    }
  }
  return text;
}

std::string parse_pieces(const std::vector<std::string_view>& pieces, bool in_thoughts,
                         OutputParser::Calls calls) {
  OutputParser parser(kGemmaOutput, in_thoughts, {}, calls);
  std::vector<OutputEvent> events;
  const auto add = [&](std::vector<OutputEvent> more) {
    for (OutputEvent& event : more) events.push_back(std::move(event));
  };
  for (const std::string_view piece : pieces) add(parser.feed(piece));
  add(parser.finish());
  std::string arguments;
  for (const OutputEvent& event : events) {
    if (event.kind == OutputEvent::Kind::tool_call_start) arguments.clear();
    if (event.kind == OutputEvent::Kind::tool_call_arguments) arguments += event.text;
    if (event.kind == OutputEvent::Kind::tool_call_end) {
      EXPECT_TRUE(parse_json(arguments, "arguments").ok()) << arguments;
    }
  }
  return joined(events);
}

// In one piece, byte by byte, and cut in two at every position: all must agree.
std::string parse(std::string_view text, bool in_thoughts = false,
                  OutputParser::Calls calls = OutputParser::Calls::anywhere) {
  const std::string whole = parse_pieces({text}, in_thoughts, calls);
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
  EXPECT_EQ(parse_pieces(bytes, in_thoughts, calls), whole) << text;
  for (size_t i = 0; i <= text.size(); ++i)
    EXPECT_EQ(parse_pieces({text.substr(0, i), text.substr(i)}, in_thoughts, calls), whole)
        << text << " cut at " << i;
  return whole;
}

std::string thinking(std::string_view text) { return parse(text, true); }

TEST(GemmaOutput, AChannelIsReasoning) {
  EXPECT_EQ(parse("<|channel>thought\n2 + 2\n<channel|>It is 4."), "think[2 + 2\n]say[It is 4.]");
  EXPECT_EQ(parse("\n<|channel>thought\nhm<channel|>\n\nYes."), "think[hm]say[Yes.]");
  EXPECT_EQ(parse("<|channel>thought\n<channel|>Yes."), "say[Yes.]");
  EXPECT_EQ(parse("<|channel>thought<channel|>Yes."), "say[Yes.]");
  EXPECT_EQ(parse("<|channel>plan-2\nfirst<channel|>Yes."), "think[first]say[Yes.]");
  EXPECT_EQ(parse("<|channel>no title here<channel|>Yes."), "think[no title here]say[Yes.]");
}

TEST(GemmaOutput, ChannelsMayComeLater) {
  EXPECT_EQ(parse("One.<|channel>thought\nmore<channel|>Two."), "say[One.]think[more]say[Two.]");
}

TEST(GemmaOutput, ThePromptMayHaveOpenedTheChannel) {
  EXPECT_EQ(thinking("2 + 2<channel|>4"), "think[2 + 2]say[4]");
  EXPECT_EQ(thinking("thought\n2 + 2<channel|>4"), "think[2 + 2]say[4]") << "the title again";
  EXPECT_EQ(thinking("<|channel>thought\n2 + 2<channel|>4"), "think[2 + 2]say[4]");
  EXPECT_EQ(thinking("thoughtful words<channel|>4"), "think[thoughtful words]say[4]");
}

TEST(GemmaOutput, UnfinishedThoughtsStayThoughts) {
  EXPECT_EQ(parse("<|channel>thought\nnever done <chan"), "think[never done <chan]");
  EXPECT_EQ(parse("<|channel>thou"), "");
  EXPECT_EQ(thinking("thou"), "think[thou]");
}

TEST(GemmaOutput, OrdinaryTextStays) {
  EXPECT_EQ(parse("a <b> <| c |> </think> <tool_call> d"),
            "say[a <b> <| c |> </think> <tool_call> d]");
  EXPECT_EQ(parse("a<channel|>b"), "say[ab]") << "a closing tag is never meant to be seen";
}

TEST(GemmaOutput, ReadsACall) {
  EXPECT_EQ(parse(R"(<|tool_call>call:weather{city:<|"|>Oslo<|"|>,days:2}<tool_call|>)"),
            R"(call weather{"city": "Oslo", "days": 2};)");
  EXPECT_EQ(parse("<|tool_call>call:now{}<tool_call|>"), "call now{};");
  EXPECT_EQ(parse("<|tool_call> call: now {}\n<tool_call|>"), "call now{};");
}

TEST(GemmaOutput, ReadsEveryKindOfValue) {
  EXPECT_EQ(parse(R"(<|tool_call>call:f{a:true,b:false,c:null,d:-1.5e3,e:[1,<|"|>x<|"|>,[],{}],)"
                  R"(f:{g:{h:<|"|>i<|"|>}},<|"|>quoted: key<|"|>:0}<tool_call|>)"),
            R"(call f{"a": true, "b": false, "c": null, "d": -1.5e3, "e": [1, "x", [], {}], )"
            R"("f": {"g": {"h": "i"}}, "quoted: key": 0};)");
}

TEST(GemmaOutput, TextMayContainAnythingButTheQuote) {
  EXPECT_EQ(parse("<|tool_call>call:f{t:<|\"|>a,}]:\n\"b\" \\ <tool_call|> {é}<|\"|>}<tool_call|>"),
            R"(call f{"t": "a,}]:\n\"b\" \\ <tool_call|> {é}"};)");
  EXPECT_EQ(parse(R"(<|tool_call>call:f{t:<|"|><|"|>}<tool_call|>)"), R"(call f{"t": ""};)");
}

TEST(GemmaOutput, BlanksAndBareWordsAreTolerated) {
  EXPECT_EQ(parse("<|tool_call>call:f{ a : 1 ,\n b : True , c: None, d: two words , e:[ 1 , 2 ]}"
                  "<tool_call|>"),
            R"(call f{"a": 1, "b": true, "c": null, "d": "two words", "e": [1, 2]};)");
  EXPECT_EQ(parse("<|tool_call>call:f{a:,b:007}<tool_call|>"), R"(call f{"a": null, "b": "007"};)");
}

TEST(GemmaOutput, JsonsQuotesAreTolerated) {
  EXPECT_EQ(parse(R"(<|tool_call>call:f{"s":"hel, lo","e":[1, "a}\"\n"]}<tool_call|>)"),
            R"(call f{"s": "hel, lo", "e": [1, "a}\"\n"]};)");
  EXPECT_EQ(parse("<|tool_call>call:f{s:\"two\nlines\", \"t\" : \"\" }<tool_call|>"),
            R"(call f{"s": "two\nlines", "t": ""};)");
  EXPECT_EQ(parse(R"(<|tool_call>call:f{s:"a" or "b",t:"no end}<tool_call|>)"),
            R"(call f{"s": "\"a\" or \"b\"", "t": "\"no end"};)");
}

TEST(GemmaOutput, SeveralCallsAndText) {
  EXPECT_EQ(parse("Let me look.\n\n<|tool_call>call:a{}<tool_call|><|tool_call>call:b{x:1}"
                  "<tool_call|>\nDone."),
            R"(say[Let me look.]call a{};call b{"x": 1};say[Done.])");
  EXPECT_EQ(parse("<|channel>thought\nI call<|tool_call>call:a{}<tool_call|>"),
            "think[I call]call a{};");
}

TEST(GemmaOutput, MissingEndsAreFilledIn) {
  EXPECT_EQ(parse("<|tool_call>call:f{a:[1,{b:2"), R"(call f{"a": [1, {"b": 2}]};)");
  EXPECT_EQ(parse("<|tool_call>call:f{a:[1,2<tool_call|>x"), R"(call f{"a": [1, 2]};say[x])");
  EXPECT_EQ(parse(R"(<|tool_call>call:f{a:<|"|>un)"), R"(call f{"a": "un"};)");
  EXPECT_EQ(parse("<|tool_call>call:f{a:"), R"(call f{"a": null};)");
  EXPECT_EQ(parse("<|tool_call>call:a{}<|tool_call>call:b{}<tool_call|>"), "call a{};call b{};");
}

// Nobody should take what was written so far for all of it.
TEST(GemmaOutput, ACallThatIsCutOffIsNotClosed) {
  const auto cut = [](std::string_view text) {
    OutputParser parser(kGemmaOutput, false, {});
    std::vector<OutputEvent> events = parser.feed(text);
    parser.cut_off();
    for (OutputEvent& event : parser.finish()) events.push_back(std::move(event));
    return joined(events);
  };
  EXPECT_EQ(cut("<|tool_call>call:f{"), "call f{;");
  EXPECT_EQ(cut(R"(<|tool_call>call:f{a:<|"|>sible str)"), R"(call f{"a": "sible str;)");
  EXPECT_EQ(cut(R"(<|tool_call>call:f{a:<|"|>str<|"|>)"), R"(call f{"a": "str";)");
  EXPECT_EQ(cut("<|tool_call>call:f{a:[1,12"), R"(call f{"a": [1, ;)");
  EXPECT_EQ(cut("<|tool_call>call:f{a:1,b"), R"(call f{"a": 1;)");
  EXPECT_EQ(cut("<|tool_call>call:f{a:1}"), R"(call f{"a": 1};)");
}

TEST(GemmaOutput, StrayTextInACallIsNotLost) {
  EXPECT_EQ(parse("<|tool_call>call:f{oops}<tool_call|>"), "call f{};say[oops]");
}

TEST(GemmaOutput, BrokenCallsAreContent) {
  for (const std::string text : {"<|tool_call>", "see <|tool_call>call:", "<|tool_call>call:f",
                                 "<|tool_call>call:{}", "<|tool_call>{\"name\": 1}",
                                 "say <|tool_call> or <tool_call|>.", "<|tool_call>call:a b\n{"})
    EXPECT_EQ(parse(text), "say[" + text + "]");
}

TEST(GemmaOutput, WithoutToolsACallIsContent) {
  const std::string call = "<|tool_call>call:f{}<tool_call|>";
  EXPECT_EQ(parse(call, false, OutputParser::Calls::as_content), "say[" + call + "]");
}

TEST(GemmaOutput, TextStreamsAsItComes) {
  OutputParser parser(kGemmaOutput, false, {});
  parser.feed("<|tool_call>call:f{t:<|\"|>first ");
  EXPECT_EQ(joined(parser.feed("second <|\"")), "second ");
  EXPECT_EQ(joined(parser.feed("!")), "<|\\\"!") << "no quote after all";
  EXPECT_EQ(joined(parser.feed("<|\"|>,n:12")), "\", \"n\": ") << "a number may go on";
  EXPECT_EQ(joined(parser.feed("3}")), "123};");
}

}  // namespace
}  // namespace slip
