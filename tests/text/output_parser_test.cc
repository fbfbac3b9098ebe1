#include "text/output_parser.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

struct Call {
  std::string name;
  std::string arguments;
  bool ended = false;
  bool operator==(const Call&) const = default;
};

struct Parsed {
  std::string reasoning;
  std::string content;
  std::vector<Call> calls;
  bool operator==(const Parsed&) const = default;

  void add(const std::vector<OutputEvent>& events) {
    for (const OutputEvent& event : events) {
      switch (event.kind) {
        case OutputEvent::Kind::reasoning: reasoning += event.text; break;
        case OutputEvent::Kind::content: content += event.text; break;
        case OutputEvent::Kind::tool_call_start:
          EXPECT_EQ(event.index, static_cast<int>(calls.size()));
          calls.push_back({event.text, ""});
          break;
        case OutputEvent::Kind::tool_call_arguments:
          ASSERT_EQ(event.index + 1, static_cast<int>(calls.size()));
          EXPECT_FALSE(calls.back().ended);
          calls.back().arguments += event.text;
          break;
        case OutputEvent::Kind::tool_call_end:
          ASSERT_EQ(event.index + 1, static_cast<int>(calls.size()));
          calls.back().ended = true;
          break;
      }
    }
  }
};

std::ostream& operator<<(std::ostream& out, const Parsed& parsed) {
  out << "reasoning [" << parsed.reasoning << "] content [" << parsed.content << "]";
  for (const Call& call : parsed.calls) out << " " << call.name << call.arguments;
  return out;
}

const JsonArray& tools() {
  static const JsonArray kTools = parse_json(R"([{"type": "function", "function": {
      "name": "f", "parameters": {"type": "object", "properties": {
        "text": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"},
        "flag": {"type": "boolean"}, "list": {"type": "array"}, "map": {"type": "object"},
        "maybe": {"type": ["integer", "null"]}}}}}])",
                                             "tools")
                                      .value()
                                      .get_array();
  return kTools;
}

Parsed parse_pieces(const std::vector<std::string_view>& pieces, bool in_reasoning,
                    OutputParser::Calls where = OutputParser::Calls::anywhere) {
  OutputParser parser(kQwenOutput, in_reasoning, tools(), where);
  Parsed parsed;
  for (const std::string_view piece : pieces) parsed.add(parser.feed(piece));
  parsed.add(parser.finish());
  for (const Call& call : parsed.calls) {
    EXPECT_TRUE(call.ended);
    EXPECT_TRUE(parse_json(call.arguments, "arguments").ok()) << call.arguments;
  }
  return parsed;
}

// Parses in one piece, byte by byte, and cut in two at every position: all must agree.
Parsed parse(std::string_view text, bool in_reasoning,
             OutputParser::Calls where = OutputParser::Calls::anywhere) {
  const Parsed whole = parse_pieces({text}, in_reasoning, where);
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
  EXPECT_EQ(parse_pieces(bytes, in_reasoning, where), whole) << text;
  for (size_t i = 0; i <= text.size(); ++i)
    EXPECT_EQ(parse_pieces({text.substr(0, i), text.substr(i)}, in_reasoning, where), whole)
        << text << " cut at " << i;
  return whole;
}

Parsed thinking(std::string_view text) { return parse(text, true); }
Parsed answering(std::string_view text) { return parse(text, false); }

constexpr std::string_view kCall =
    "<tool_call>\n<function=f>\n<parameter=text>\nOslo\n</parameter>\n</function>\n</tool_call>";
const Call kOslo{"f", R"({"text": "Oslo"})", true};

TEST(OutputParser, SplitsReasoningFromContent) {
  EXPECT_EQ(thinking("so 2 + 2\n</think>\n\nIt is 4."), (Parsed{"so 2 + 2\n", "It is 4.", {}}));
}

TEST(OutputParser, WithoutAnEndAllIsReasoning) {
  EXPECT_EQ(thinking("never done </thi"), (Parsed{"never done </thi", "", {}}));
}

TEST(OutputParser, WithThinkingOffAllIsContent) {
  EXPECT_EQ(answering("\nHello <b>you</b>\n"), (Parsed{"", "\nHello <b>you</b>\n", {}}));
}

TEST(OutputParser, AModelMayOpenItsOwnThoughts) {
  EXPECT_EQ(answering("<think>\nhm</think>\nyes"), (Parsed{"\nhm", "yes", {}}));
  EXPECT_EQ(answering("a <think> b"), (Parsed{"", "a <think> b", {}}));
}

TEST(OutputParser, DropsStrayThinkTags) {
  EXPECT_EQ(thinking("<think>\na<think>b</think>c</think>d"), (Parsed{"\nab", "cd", {}}));
  EXPECT_EQ(thinking("a</think>\n</think>\n\nb"), (Parsed{"a", "b", {}}));
}

TEST(OutputParser, KeepsUnicodeWhole) {
  OutputParser parser(kQwenOutput, true, {});
  for (const std::string_view piece : {"größe", "日本", "😀</think>", "é"})
    for (const OutputEvent& event : parser.feed(piece)) EXPECT_TRUE(piece.starts_with(event.text));
}

TEST(OutputParser, HoldsBackOnlyWhatMayBeATag) {
  OutputParser parser(kQwenOutput, false, {});
  EXPECT_EQ(parser.feed("a < b <to").at(0).text, "a < b");
  EXPECT_EQ(parser.feed("y").at(0).text, " <toy");
}

TEST(OutputParser, ReadsATextThenACall) {
  EXPECT_EQ(thinking("hm\n</think>\n\nLet me look.\n\n" + std::string(kCall)),
            (Parsed{"hm\n", "Let me look.", {kOslo}}));
  EXPECT_EQ(thinking("</think>\n\n" + std::string(kCall) + "\n"), (Parsed{"", "", {kOslo}}));
}

TEST(OutputParser, ACallEndsReasoning) {
  EXPECT_EQ(thinking("I call" + std::string(kCall) + "\n</think>\n\n"),
            (Parsed{"I call", "", {kOslo}}));
}

TEST(OutputParser, ThoughtsAboutCallsGoOn) {
  const std::string text = "It is <tool_call> then args. So hi.\n</think>\n\nHi!";
  const Parsed expected{"It is <tool_call> then args. So hi.\n", "Hi!", {}};
  EXPECT_EQ(thinking(text), expected);
  EXPECT_EQ(parse(text, true, OutputParser::Calls::as_content), expected);
  EXPECT_EQ(parse(std::string(kCall) + "</think>no", true, OutputParser::Calls::as_content),
            (Parsed{std::string(kCall), "no", {}}));
}

TEST(OutputParser, ReadsSeveralCalls) {
  const std::string call(kCall);
  EXPECT_EQ(answering(call + "\n" + call + "\n\nDone."), (Parsed{"", "Done.", {kOslo, kOslo}}));
}

TEST(OutputParser, CallsMayStandInsteadOfAForm) {
  const auto where = OutputParser::Calls::first;
  for (const std::string form : {R"({"a": "see <function=f> and <tool_call>\n<function=f>"})",
                                 R"("<tool_call>")", "no tags", "< <function=f>"}) {
    EXPECT_EQ(parse(form, false, where), (Parsed{"", form, {}}));
    EXPECT_EQ(parse("hm</think>\n\n" + form, true, where), (Parsed{"hm", form, {}}));
  }
  const std::string call(kCall);
  EXPECT_EQ(parse(call, false, where), (Parsed{"", "", {kOslo}}));
  EXPECT_EQ(parse("hm</think>\n\n" + call + "\n" + call, true, where),
            (Parsed{"hm", "", {kOslo, kOslo}}));
  EXPECT_EQ(parse("hm " + call, true, where), (Parsed{"hm ", "", {kOslo}}));
}

TEST(OutputParser, ToleratesMissingTags) {
  const std::string open = "<function=f>\n<parameter=text>\nOslo\n</parameter>\n";
  EXPECT_EQ(answering(open + "</function>"), (Parsed{"", "", {kOslo}}));
  EXPECT_EQ(answering(open + "</tool_call>"), (Parsed{"", "", {kOslo}}));
  EXPECT_EQ(answering(open), (Parsed{"", "", {kOslo}}));
  EXPECT_EQ(answering(open + "<tool_call>\n" + open), (Parsed{"", "", {kOslo, kOslo}}));
  EXPECT_EQ(answering(open + open), (Parsed{"", "", {kOslo, kOslo}}));
  EXPECT_EQ(answering("<tool_call><function=f><parameter=text>Oslo</function></tool_call>"),
            (Parsed{"", "", {kOslo}}));
  EXPECT_EQ(answering("<tool_call><function=f><parameter=text>Oslo</tool_call>"),
            (Parsed{"", "", {kOslo}}));
  EXPECT_EQ(answering("<function=f><parameter=text>Oslo\n<tool_call>\n" + open),
            (Parsed{"", "", {kOslo, kOslo}}));
}

TEST(OutputParser, ABareCallIsOneOfAKnownTool) {
  EXPECT_EQ(answering("Write <function=foo> and <function=f></function>"),
            (Parsed{"", "Write <function=foo> and", {{"f", "{}", true}}}));
  OutputParser parser(kQwenOutput, false, {});
  EXPECT_EQ(parser.feed("<function=foo>")[0].kind, OutputEvent::Kind::tool_call_start);
}

// Nobody should take what was written so far for all of it.
TEST(OutputParser, ACallThatIsCutOffIsNotClosed) {
  const auto arguments_of = [](std::string_view text) {
    OutputParser parser(kQwenOutput, false, tools());
    Parsed parsed;
    parsed.add(parser.feed(text));
    parser.cut_off();
    parsed.add(parser.finish());
    EXPECT_EQ(parsed.content, "");
    return parsed.calls.at(0).arguments;
  };
  const std::string start = "<tool_call>\n<function=f>\n";
  EXPECT_EQ(arguments_of(start), "");
  EXPECT_EQ(arguments_of(start + "<parameter=text>\nsible str"), R"({"text": "sible str)");
  EXPECT_EQ(arguments_of(start + "<parameter=text>\nstr\n</param"), R"({"text": "str)");
  EXPECT_EQ(arguments_of(start + "<parameter=count>\n12"), R"({"count": )");
  EXPECT_EQ(arguments_of(start + "<parameter=count>\n12\n</parameter>\n"), R"({"count": 12)");
  EXPECT_EQ(arguments_of(kCall), kOslo.arguments);
  EXPECT_EQ(arguments_of(kCall.substr(0, kCall.size() - 13)), kOslo.arguments);
}

TEST(OutputParser, AValueEndsAtTheNextParameter) {
  EXPECT_EQ(answering("<function=f>\n<parameter=text>\na\n<parameter=count>\n3\n</parameter>")
                .calls.at(0)
                .arguments,
            R"({"text": "a", "count": 3})");
}

TEST(OutputParser, ValuesMayContainTags) {
  const std::string value =
      "<b>x</b> </function> </think> <tool_call> <parameter=\n </tool_call> z";
  EXPECT_EQ(answering("<tool_call>\n<function=f>\n<parameter=text>\n" + value +
                      "\n</parameter>\n</function>\n</tool_call>"),
            (Parsed{"",
                    "",
                    {{"f",
                      "{\"text\": \"<b>x</b> </function> </think> <tool_call> "
                      "<parameter=\\n </tool_call> z\"}",
                      true}}}));
}

// Outside its strings, or where it is none, JSON ends as a text does.
TEST(OutputParser, StringsOfJsonMayContainTags) {
  const auto map_of = [](const std::string& value) {
    const Parsed parsed = answering("<tool_call>\n<function=f>\n<parameter=map>\n" + value +
                                    "\n</parameter>\n<parameter=count>\n5\n</parameter>\n"
                                    "</function>\n</tool_call>");
    EXPECT_EQ(parsed.content, "");
    EXPECT_EQ(parsed.calls.size(), 1u);
    return parsed.calls.at(0).arguments;
  };
  for (const std::string value :
       {R"({"a": "x</parameter>y", "b": "<parameter=c>"})", R"({"a": "\"</parameter>\\"})",
        R"({"a": "</function></tool_call>"})", R"({"</tool_call>": ["<tool_call>\n<function=f>"]})",
        "\n [1]\n"})
    EXPECT_EQ(map_of(value),
              R"({"map": )" + (value[0] == '{' ? value : "\"\\n [1]\\n\"") + R"(, "count": 5})");
  EXPECT_EQ(map_of(R"({"a": "no end)"), R"({"map": "{\"a\": \"no end", "count": 5})");
  EXPECT_EQ(map_of("say \"hi"), R"({"map": "say \"hi", "count": 5})");
}

TEST(OutputParser, StripsOneNewlineAtEachEndOfAValue) {
  const auto value = [](const std::string& text) {
    return answering("<function=f><parameter=text>" + text + "</parameter></function>")
        .calls.at(0)
        .arguments;
  };
  EXPECT_EQ(value("\na\n"), R"({"text": "a"})");
  EXPECT_EQ(value("\n\n a \n\n"), R"({"text": "\n a \n"})");
  EXPECT_EQ(value("a"), R"({"text": "a"})");
  EXPECT_EQ(value("\n"), R"({"text": ""})");
  EXPECT_EQ(value("\n\n"), R"({"text": ""})");
  EXPECT_EQ(value(""), R"({"text": ""})");
  EXPECT_EQ(value("\n\"q\"\t\\ é\n"), R"({"text": "\"q\"\t\\ é"})");
}

TEST(OutputParser, ACallWithoutParametersHasAnEmptyObject) {
  EXPECT_EQ(answering("<tool_call>\n<function=ping>\n</function>\n</tool_call>"),
            (Parsed{"", "", {{"ping", "{}", true}}}));
}

TEST(OutputParser, ConvertsBySchema) {
  const std::string call =
      "<function=f><parameter=count>\n42\n</parameter><parameter=ratio>\n0.5\n</parameter>"
      "<parameter=flag>\nTrue\n</parameter><parameter=list>\n[1, \"a\"]\n</parameter>"
      "<parameter=map>\n{\"k\": null}\n</parameter><parameter=maybe>\nnull\n</parameter>"
      "<parameter=text>\n42\n</parameter><parameter=unknown>\n42\n</parameter></function>";
  EXPECT_EQ(answering(call).calls.at(0).arguments,
            R"({"count": 42, "ratio": 0.5, "flag": true, "list": [1, "a"], "map": {"k": null}, )"
            R"("maybe": null, "text": "42", "unknown": "42"})");
}

TEST(OutputParser, WhatDoesNotConvertStaysText) {
  const std::string call =
      "<function=f><parameter=count>\nmany\n</parameter><parameter=map>\n{oops\n</parameter>";
  EXPECT_EQ(answering(call).calls.at(0).arguments, R"({"count": "many", "map": "{oops"})");
}

TEST(OutputParser, BrokenCallsAreContent) {
  for (const std::string_view text :
       {"see <function=", "see <function=f", "<tool_call>", "<tool_call>\n<func", "<tool_call>\n{}",
        "a <function=\n> b", "a <function=> b", "<function=f<x>",
        "say <tool_call> or </tool_call>."})
    EXPECT_EQ(answering(text), (Parsed{"", std::string(text), {}})) << text;
}

TEST(OutputParser, StrayTextInsideACallIsNotLost) {
  EXPECT_EQ(answering("<tool_call>\n<function=f>\noops <x>\n</function>\n</tool_call>"),
            (Parsed{"", "oops <x>", {{"f", "{}", true}}}));
}

TEST(OutputParser, StreamsStringsAsTheyCome) {
  OutputParser parser(kQwenOutput, false, tools());
  parser.feed("<tool_call>\n<function=f>\n<parameter=text>\nfirst ");
  const std::vector<OutputEvent> events = parser.feed("second ");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, OutputEvent::Kind::tool_call_arguments);
  EXPECT_EQ(events[0].text, "second ");
}

}  // namespace
}  // namespace slip
