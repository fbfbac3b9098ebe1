#include "grammar/tool_rules.h"

#include <gmock/gmock.h>

#include "tests/grammar/answers.h"
#include "text/output_parser.h"

namespace slip {
namespace {

const char* const kTools = R"([
  {"type": "function", "function": {"name": "get_weather", "description": "The weather.",
    "parameters": {"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7},
      "units": {"type": "string", "enum": ["metric", "imperial"]},
      "places": {"type": "array", "items": {"type": "string"}},
      "oddity": {"type": "integer", "not": {"const": 3}}},
      "required": ["city", "units"]}}},
  {"name": "now", "input_schema": {"type": "object", "properties": {}}}
])";

ConstraintSpec tool_spec(ToolChoice choice, Thoughts thoughts = Thoughts::none,
                         bool parallel = true) {
  return {.kind = ConstraintSpec::Kind::tool_calls,
          .tools = parse_json(kTools, "tools").value().get_array(),
          .tool_choice = choice,
          .parallel_calls = parallel,
          .thoughts = thoughts};
}

const std::string kWeather =
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nBrest, the old\n town\n</parameter>\n"
    "<parameter=units>\nmetric\n</parameter>\n</function>\n</tool_call>";
const std::string kNow = "<tool_call>\n<function=now>\n</function>\n</tool_call>";

TEST(ToolCalls, Required) {
  const ConstraintSpec spec = tool_spec(ToolChoice::required);
  for (const std::string& text : {kWeather, kNow, kNow + "\n" + kWeather, kNow + "\n"})
    EXPECT_TRUE(accepts(spec, text)) << text;
  EXPECT_TRUE(accepts(
      spec,
      "<tool_call>\n<function=get_weather>\n<parameter=city>\na<b</c </parameter\n</parameter>\n"
      "<parameter=days>\n7\n</parameter>\n<parameter=units>\nimperial\n</parameter>\n"
      "<parameter=places>\n[\"x\", \"y\"]\n</parameter>\n</function>\n</tool_call>"));
  for (const std::string& text :
       {std::string(""), std::string("Hello"), kWeather + kNow,
        std::string("<tool_call>\n<function=get_weather>\n</function>\n</tool_call>"),
        std::string("<tool_call>\n<function=unknown>\n</function>\n</tool_call>"),
        std::string("<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n"
                    "<parameter=days>\n8\n</parameter>\n<parameter=units>\nmetric\n</parameter>\n"
                    "</function>\n</tool_call>"),
        std::string("<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n"
                    "<parameter=units>\nfeet\n</parameter>\n</function>\n</tool_call>")})
    EXPECT_FALSE(accepts(spec, text)) << text;
  EXPECT_FALSE(accepts(tool_spec(ToolChoice::required, Thoughts::none, false), kNow + "\n" + kNow));
}

TEST(ToolCalls, AutomaticIsFreeUntilACallBegins) {
  const ConstraintSpec spec = tool_spec(ToolChoice::automatic);
  for (const std::string& text :
       {std::string(""), std::string("Just text, with <tags> and <tool_ things."),
        "I will look.\n\n" + kWeather, kNow})
    EXPECT_TRUE(accepts(spec, text)) << text;
  EXPECT_FALSE(accepts(spec, "<tool_call>"));
  EXPECT_FALSE(accepts(spec, "<tool_call>{\"name\": 1}"));
  EXPECT_FALSE(accepts(spec, kNow + " and more"));

  const std::unique_ptr<Constraint> constraint = constraint_of(spec);
  EXPECT_TRUE(constraint->free());
  EXPECT_TRUE(constraint->allows(stop_id()));
  EXPECT_TRUE(constraint->allows(*minnow_tokenizer().find("<|im_start|>")));
  accepted_bytes(*constraint, "a <");
  EXPECT_FALSE(constraint->free());
  EXPECT_TRUE(constraint->allows(stop_id()));
  accepted_bytes(*constraint, "b");
  EXPECT_TRUE(constraint->free());
  constraint->advance(*minnow_tokenizer().find("<|im_start|>"));
  EXPECT_TRUE(constraint->free());
  constraint->advance(*minnow_tokenizer().find("<tool_call>"));
  EXPECT_FALSE(constraint->free());
  EXPECT_EQ(accepted_bytes(*constraint, "\n<function=now>\n</function>\n"), 28u);
  EXPECT_TRUE(constraint->allows(*minnow_tokenizer().find("</tool_call>")));
}

TEST(ToolCalls, AfterReasoning) {
  const ConstraintSpec spec = tool_spec(ToolChoice::required, Thoughts::begun);
  EXPECT_TRUE(accepts(spec, "Let me think.</think>\n\n" + kNow));
  EXPECT_TRUE(accepts(spec, "Let me think. " + kNow));
  EXPECT_FALSE(accepts(spec, "Let me think.</think>\n\nText."));
  EXPECT_FALSE(accepts(spec, "Let me think."));
  const ConstraintSpec json{.kind = ConstraintSpec::Kind::json_object, .thoughts = Thoughts::begun};
  EXPECT_TRUE(accepts(json, "So <tool_call> it is.</think>\n\n{}"));
  EXPECT_FALSE(accepts(json, "Thoughts alone"));
  EXPECT_FALSE(accepts(json, "{}"));
}

// A vocabulary in which the tags are special tokens, which no bytes spell.
TEST(ToolCalls, TagsMayBeSpecialTokens) {
  std::string vocab;
  for (int byte = 32; byte < 127; ++byte) {
    const char c = char(byte == ' ' ? 0 : byte);
    if (c == 0) continue;
    std::string key(1, c);
    if (c == '"' || c == '\\') key.insert(0, 1, '\\');
    vocab += cat(vocab.empty() ? "" : ",", "\"", key, "\":", byte);
  }
  vocab += R"(,"Ċ":10)";
  const std::string text = cat(R"({"model":{"type":"BPE","vocab":{)", vocab,
                               R"(},"merges":[]},"decoder":{"type":"ByteLevel"},
      "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":false},
      "added_tokens":[{"id":200,"content":"<tool_call>","special":true},
      {"id":201,"content":"</tool_call>","special":true},
      {"id":202,"content":"</think>","special":true},
      {"id":203,"content":"<end>","special":true}]})");
  const Result<Tokenizer> tokenizer = Tokenizer::from_json(text, "test");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.failure().message;
  const int32_t stop = 203;
  for (const ToolChoice choice : {ToolChoice::automatic, ToolChoice::required}) {
    Result<std::unique_ptr<Constraint>> made =
        make_constraint(tool_spec(choice, Thoughts::begun), TokenIndex::make(tokenizer.value()),
                        std::span(&stop, 1));
    ASSERT_TRUE(made.ok()) << made.failure().message;
    Constraint& constraint = *made.value();
    const auto write = [&](std::string_view bytes) {
      for (const char byte : bytes) {
        const int32_t id = byte;
        ASSERT_TRUE(constraint.allows(id)) << byte << " of " << bytes;
        EXPECT_TRUE(constraint.allowed().contains(id));
        constraint.advance(id);
      }
    };
    const auto write_special = [&](int32_t id) {
      ASSERT_TRUE(constraint.allows(id)) << id;
      EXPECT_TRUE(constraint.allowed().contains(id)) << id;
      constraint.advance(id);
    };
    write("ab<");
    write_special(202);
    write("\n\n");
    write_special(200);
    EXPECT_FALSE(constraint.allows(200));
    write("\n<function=now>\n</function>\n");
    EXPECT_FALSE(constraint.allows(stop));
    write_special(201);
    EXPECT_TRUE(constraint.allows(stop));
    EXPECT_FALSE(constraint.allows(201));
  }
}

TEST(ToolCalls, RandomCallsParseAndFit) {
  std::mt19937 random(5);
  const ConstraintSpec spec = tool_spec(ToolChoice::required);
  int finished = 0;
  for (int round = 0; round < 60; ++round) {
    const std::unique_ptr<Constraint> constraint = constraint_of(spec);
    const std::optional<std::string> answer =
        random_answer(*constraint, random, 300, {"\n</parameter>\n", "</function>", "]", "\""});
    if (!answer) continue;
    const std::string& text = *answer;
    ++finished;
    OutputParser parser(kQwenOutput, false, spec.tools);
    std::vector<OutputEvent> events = parser.feed(text);
    for (OutputEvent& event : parser.finish()) events.push_back(std::move(event));
    std::string name;
    std::string arguments;
    for (const OutputEvent& event : events) {
      if (event.kind == OutputEvent::Kind::tool_call_start) {
        name = event.text;
        arguments.clear();
      }
      EXPECT_NE(event.kind, OutputEvent::Kind::content) << text;
      if (event.kind == OutputEvent::Kind::tool_call_arguments) arguments += event.text;
      if (event.kind != OutputEvent::Kind::tool_call_end) continue;
      const Result<Json> parsed = parse_json(arguments, "arguments");
      ASSERT_TRUE(parsed.ok()) << parsed.failure().message << "\n" << text;
      if (name != "get_weather") continue;
      const JsonObject& object = parsed.value().get_object();
      ASSERT_TRUE(object.contains("city")) << text;
      EXPECT_TRUE(object.at("city").is_string());
      EXPECT_TRUE(object.at("units") == "metric" || object.at("units") == "imperial");
      if (const Json* days = object.if_contains("days")) {
        ASSERT_TRUE(days->is_int64());
        EXPECT_GE(days->get_int64(), 1);
        EXPECT_LE(days->get_int64(), 7);
      }
      if (const Json* places = object.if_contains("places")) {
        EXPECT_TRUE(places->is_array());
      }
    }
  }
  EXPECT_GT(finished, 20);
}

// Calls of one tool with these parameters.
ConstraintSpec spec_of_parameters(const std::string& parameters, bool strict = false) {
  const std::string tools = R"([{"name": "f", "parameters": )" + parameters + "}]";
  return {.kind = ConstraintSpec::Kind::tool_calls,
          .strict = strict,
          .tools = parse_json(tools, "tools").value().get_array(),
          .tool_choice = ToolChoice::required};
}

using Given = std::vector<std::pair<std::string, std::string>>;  // parameters and their texts

std::string call_with(const Given& parameters) {
  std::string text = "<tool_call>\n<function=f>\n";
  for (const auto& [name, value] : parameters)
    text += "<parameter=" + name + ">\n" + value + "\n</parameter>\n";
  return text + "</function>\n</tool_call>";
}

TEST(ToolCalls, ParametersAreFoundWhereverTheSchemaLeads) {
  const auto fits = [](const std::string& parameters, const Given& given) {
    return accepts(spec_of_parameters(parameters), call_with(given));
  };
  for (const char* parameters :
       {R"({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "required": ["n"],
            "properties": {"n": {"type": "integer"}, "m": {"type": "string"}}}}})",
        R"({"allOf": [{"properties": {"n": {"type": "integer"}}},
                      {"properties": {"m": {"type": "string"}}, "required": ["n"]}]})"}) {
    EXPECT_TRUE(fits(parameters, {{"n", "5"}, {"m", "x"}})) << parameters;
    EXPECT_FALSE(fits(parameters, {{"n", "x"}})) << parameters;
    EXPECT_FALSE(fits(parameters, {})) << parameters;
    EXPECT_FALSE(fits(parameters, {{"n", "5"}, {"q", "x"}})) << parameters;
  }
  const char* either = R"({"type": "object", "anyOf": [
      {"properties": {"x": {"type": "boolean"}}, "required": ["x"]},
      {"properties": {"y": {"type": "integer"}}, "required": ["y"]}]})";
  EXPECT_TRUE(fits(either, {{"x", "true"}}));
  EXPECT_TRUE(fits(either, {{"y", "3"}}));
  EXPECT_FALSE(fits(either, {{"x", "true"}, {"y", "3"}}));
  EXPECT_FALSE(fits(either, {}));
}

TEST(ToolCalls, ParametersMayBeFree) {
  const auto fits = [](const std::string& parameters, const Given& given, bool strict = false) {
    return accepts(spec_of_parameters(parameters, strict), call_with(given));
  };
  for (const char* parameters :
       {R"({"type": "object"})", "{}", R"({"type": "object", "additionalProperties": true})",
        R"({"type": "object", "properties": {}, "additionalProperties": true})"}) {
    EXPECT_TRUE(fits(parameters, {{"a-b.c", "1\n2"}, {"d", ""}})) << parameters;
    EXPECT_TRUE(fits(parameters, {})) << parameters;
  }
  for (const char* parameters : {R"({"type": "object", "properties": {}})", "null",
                                 R"({"type": "object", "additionalProperties": false})"}) {
    EXPECT_FALSE(fits(parameters, {{"a", "1"}})) << parameters;
    EXPECT_TRUE(fits(parameters, {})) << parameters;
  }
  EXPECT_FALSE(fits(R"({"type": "object"})", {{"a", "1"}}, true));
  const char* typed = R"({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}})";
  EXPECT_TRUE(fits(typed, {{"a", "x"}, {"b", "1"}, {"ab", "2"}}, true));
  EXPECT_FALSE(fits(typed, {{"b", "x"}}, true));
  EXPECT_FALSE(fits(typed, {{"a", "1"}, {"a", "1"}}, true));
  const char* required = R"({"type": "object", "required": ["x"]})";
  EXPECT_TRUE(fits(required, {{"x", "any"}}));
  EXPECT_FALSE(fits(required, {}));
  EXPECT_FALSE(try_constraint(spec_of_parameters(required, true)).ok());
}

TEST(ToolCalls, StrictTextsHaveTheirForm) {
  const auto fits = [](const std::string& schema, const std::string& text) {
    return accepts(spec_of_parameters(R"({"properties": {"p": )" + schema +
                                          R"(}, "required": ["p"],
            "$defs": {"Color": {"enum": ["red", "green"]}}})",
                                      true),
                   call_with({{"p", text}}));
  };
  for (const char* color :
       {R"({"$ref": "#/$defs/Color"})", R"({"allOf": [{"$ref": "#/$defs/Color"}]})",
        R"({"anyOf": [{"enum": ["red", "green"]}, {"type": "null"}]})",
        R"({"type": ["string", "null"], "enum": ["red", null]})", R"({"const": "red"})"}) {
    EXPECT_TRUE(fits(color, "red")) << color;
    EXPECT_FALSE(fits(color, "blue")) << color;
    EXPECT_FALSE(fits(color, "\"red\"")) << color;
  }
  EXPECT_TRUE(fits(R"({"type": "string", "pattern": "^a+$"})", "aaa"));
  EXPECT_FALSE(fits(R"({"type": "string", "pattern": "^a+$"})", "ab"));
  EXPECT_FALSE(fits(R"({"type": "string", "pattern": "^a"})", "a <tool"));
  EXPECT_TRUE(fits(R"({"type": "string", "format": "date"})", "2026-11-19"));
  EXPECT_FALSE(fits(R"({"type": "string", "format": "date"})", "today"));
  EXPECT_TRUE(fits(R"({"type": ["string", "null"]})", "null"));
  const char* short_text = R"({"type": "string", "minLength": 2, "maxLength": 7})";
  for (const char* text : {"ab", "<p>x</p", "\n<\n", "\u00e9\u20ac", "</param"})
    EXPECT_TRUE(fits(short_text, text)) << text;
  for (const char* text : {"", "a", "\u20ac", "12345678", "<<<<<<<<"})
    EXPECT_FALSE(fits(short_text, text)) << text;
  EXPECT_FALSE(fits(R"({"type": "string", "minLength": 1})", "a</parameter>"));
}

TEST(ToolCalls, RandomTextsHaveTheirLength) {
  std::mt19937 random(7);
  const ConstraintSpec spec = spec_of_parameters(
      R"({"properties": {"p": {"type": "string", "minLength": 3, "maxLength": 20}},
          "required": ["p"]})");
  const std::string before = "<parameter=p>\n";
  int finished = 0;
  for (int round = 0; round < 60; ++round) {
    const std::unique_ptr<Constraint> constraint = constraint_of(spec);
    const auto answer = random_answer(*constraint, random, 200, {"\n</parameter>\n", "<"});
    if (!answer) continue;
    ++finished;
    const size_t begin = answer->find(before) + before.size();
    const std::string text = answer->substr(begin, answer->find("\n</parameter>") - begin);
    const auto characters =
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
    EXPECT_GE(characters, 3) << text;
    EXPECT_LE(characters, 20) << text;
  }
  EXPECT_GT(finished, 20);
}

TEST(ToolCalls, WhatStrictToolsCannotKeepIsRefused) {
  const auto refusal = [](const std::string& parameters) {
    const auto made = try_constraint(spec_of_parameters(parameters, true));
    return made.ok() ? "none" : made.failure().message;
  };
  const auto of_value = [&](const std::string& schema) {
    return refusal(R"({"properties": {"p": )" + schema + "}}");
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(of_value(R"({"not": {"type": "string"}})"), HasSubstr("\"not\""));
  EXPECT_THAT(of_value(R"({"type": "string", "pattern": "^<b>$"})"), HasSubstr("'<'"));
  EXPECT_THAT(of_value(R"({"enum": ["a</parameter>b"]})"), HasSubstr("tag"));
  EXPECT_THAT(of_value(R"({"type": ["string", "array"]})"), HasSubstr("may be a text"));
  EXPECT_THAT(of_value(R"({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]})"),
              HasSubstr("parameter p"));
  EXPECT_EQ(of_value(R"({"type": ["string", "number", "boolean", "null"]})"), "none");
  EXPECT_THAT(refusal(R"({"properties": {}, "minProperties": 1})"), HasSubstr("minProperties"));
  EXPECT_THAT(refusal(R"({"patternProperties": {}})"), HasSubstr("patternProperties"));
  EXPECT_THAT(refusal(R"({"$ref": "https://example.com"})"), HasSubstr("$ref"));
}

// Zod's and pydantic's schemas say such things of texts that hold whole files.
TEST(ToolCalls, HintsTakeNoTextAway) {
  const std::string page = "<html>\n<p class='x'>a</p></html>";
  for (const char* schema :
       {R"({"type": "string", "minLength": 1})", R"({"type": "string", "maxLength": 1000})",
        R"({"type": "string", "pattern": "\\S"})", R"({"$ref": "#/nowhere"})",
        R"({"type": "string", "not": {}})", R"({"type": "string", "format": "uri"})",
        R"({"anyOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]})",
        R"({"enum": ["<tool_call>"]})",
        R"({"type": ["string", "array"], "items": {"type": "integer"}})"})
    EXPECT_TRUE(accepts(spec_of_parameters(cat(R"({"properties": {"p": )", schema, "}}")),
                        call_with({{"p", page}})))
        << schema;
}

TEST(ToolCalls, Refusals) {
  ConstraintSpec spec = tool_spec(ToolChoice::required);
  spec.strict = true;
  const auto made = try_constraint(spec);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.failure().message.find("get_weather"), std::string::npos);
  EXPECT_NE(made.failure().message.find("not"), std::string::npos);
  spec.tools.clear();
  EXPECT_FALSE(try_constraint(spec).ok());
  spec.tools = parse_json(R"([{"name": "a>b"}])", "tools").value().get_array();
  EXPECT_FALSE(try_constraint(spec).ok());
}

}  // namespace
}  // namespace slip
