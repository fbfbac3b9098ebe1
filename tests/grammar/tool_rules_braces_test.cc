// Tool calls in Gemma 4's form, over a small tokenizer of Gemma's kind.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "base/files.h"
#include "grammar/grammar.h"
#include "text/output_parser.h"

namespace slip {
namespace {

const Tokenizer& tokenizer() {
  static const Tokenizer kTokenizer = [] {
    const std::string path = SLIP_SOURCE_DIR "/tests/data/tokenizer/gemma_like.tokenizer.json";
    return Tokenizer::from_json(read_text_file(path).value(), path).value();
  }();
  return kTokenizer;
}

int32_t stop_id() { return *tokenizer().find("<|tool_response>"); }

constexpr const char* kTools = R"([{"type": "function", "function": {"name": "weather",
    "parameters": {"type": "object", "required": ["city", "units"], "properties": {
      "units": {"enum": ["metric", "imperial"]},
      "city": {"type": "string"},
      "days": {"type": "integer", "minimum": 1, "maximum": 7},
      "Places": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
      "where": {"$ref": "#/$defs/point"},
      "extra": {}},
      "$defs": {"point": {"type": "object", "properties": {
        "x": {"type": "number"}, "next": {"$ref": "#/$defs/point"}}}}}}},
    {"name": "now"}])";

ConstraintSpec spec_of(ToolChoice choice, bool parallel = true,
                       Thoughts thoughts = Thoughts::none) {
  ConstraintSpec spec;
  spec.kind = ConstraintSpec::Kind::tool_calls;
  spec.tools = parse_json(kTools, "tools").value().get_array();
  spec.tool_choice = choice;
  spec.parallel_calls = parallel;
  spec.thoughts = thoughts;
  return spec;
}

std::unique_ptr<Constraint> constraint_of(const ConstraintSpec& spec) {
  static const std::shared_ptr<const TokenIndex> kTokens = TokenIndex::make(tokenizer());
  const int32_t stop = stop_id();
  auto made = make_constraint(spec, kTokens, std::span(&stop, 1));
  EXPECT_TRUE(made.ok()) << made.failure().message;
  return std::move(made).value();
}

bool accepts(const ConstraintSpec& spec, std::string_view text) {
  const std::unique_ptr<Constraint> constraint = constraint_of(spec);
  for (const int32_t id : tokenizer().encode(text)) {
    if (!constraint->allows(id)) return false;
    EXPECT_EQ(constraint->free() || constraint->allowed().contains(id), true) << text;
    constraint->advance(id);
  }
  return constraint->allows(stop_id());
}

TEST(BraceCalls, HaveTheFormOfTheModel) {
  const ConstraintSpec spec = spec_of(ToolChoice::required);
  const std::string call = R"(<|tool_call>call:weather{city:<|"|>Oslo<|"|>,units:<|"|>metric<|"|>})"
                           "<tool_call|>";
  EXPECT_TRUE(accepts(spec, call));
  EXPECT_TRUE(accepts(spec, call + "<|tool_call>call:now{}<tool_call|>"));
  EXPECT_FALSE(accepts(spec_of(ToolChoice::required, false), call + call));
  EXPECT_FALSE(accepts(spec, "Hello"));
  EXPECT_FALSE(accepts(spec, ""));
  EXPECT_FALSE(accepts(spec, "<|tool_call>call:nobody{}<tool_call|>"));
  EXPECT_FALSE(accepts(spec, "<|tool_call>call:now{}"));
}

TEST(BraceCalls, ArgumentsFollowTheSchema) {
  const ConstraintSpec spec = spec_of(ToolChoice::required);
  const auto call = [&](const std::string& body) {
    return accepts(spec, "<|tool_call>call:weather{" + body + "}<tool_call|>");
  };
  const std::string units = R"(units:<|"|>metric<|"|>)";
  const std::string city = R"(city:<|"|>a, "b": {c}<|"|>)";
  EXPECT_TRUE(call(city + "," + units));
  EXPECT_FALSE(call(units)) << "city is required";
  EXPECT_FALSE(call(units + "," + city)) << "members come by key";
  EXPECT_FALSE(call(city + R"(,units:<|"|>stone<|"|>)"));
  EXPECT_TRUE(call(city + ",days:7," + units));
  EXPECT_FALSE(call(city + ",days:8," + units));
  EXPECT_FALSE(call(city + R"(,days:<|"|>7<|"|>,)" + units));
  EXPECT_TRUE(call(city + R"(,Places:[<|"|>a<|"|>,<|"|>b<|"|>],)" + units));
  EXPECT_TRUE(call(city + ",Places:[]," + units));
  EXPECT_FALSE(
      call(city + R"(,Places:[<|"|>a<|"|>,<|"|>b<|"|>,<|"|>c<|"|>,<|"|>d<|"|>],)" + units));
  EXPECT_TRUE(call(city + "," + units + ",where:{next:{next:{},x:1},x:2.5}"));
  EXPECT_TRUE(call(city + R"(,extra:{a:[1,<|"|>t<|"|>,null,true,{}]},)" + units));
}

TEST(BraceCalls, TextIsFreeUntilACallBegins) {
  const ConstraintSpec spec = spec_of(ToolChoice::automatic);
  EXPECT_TRUE(accepts(spec, "Hello, no call <b> here."));
  EXPECT_TRUE(
      accepts(spec, "<|channel>thought\nhm<channel|>So.<|tool_call>call:now{}<tool_call|>"));
  EXPECT_FALSE(accepts(spec, "So.<|tool_call>call:later{}<tool_call|>"));
}

TEST(BraceCalls, ThoughtsMayComeFirst) {
  const ConstraintSpec spec = spec_of(ToolChoice::required, true, Thoughts::begun);
  EXPECT_TRUE(accepts(spec, "hm<channel|><|tool_call>call:now{}<tool_call|>"));
  EXPECT_TRUE(accepts(spec, "hm<|tool_call>call:now{}<tool_call|>"));
  EXPECT_FALSE(accepts(spec, "hm<channel|>Hello"));
}

TEST(BraceCalls, RandomCallsParseAndFit) {
  std::mt19937 random(3);
  const ConstraintSpec spec = spec_of(ToolChoice::required);
  int finished = 0;
  for (int round = 0; round < 200; ++round) {
    const std::unique_ptr<Constraint> constraint = constraint_of(spec);
    std::string text;
    bool ended = false;
    for (int step = 0; step < 400 && !ended; ++step) {
      const TokenSet& allowed = constraint->allowed();
      ended = allowed.contains(stop_id());
      std::vector<int32_t> ids;
      for (size_t i = 0; i < allowed.words().size(); ++i)
        for (uint64_t word = allowed.words()[i]; word; word &= word - 1)
          ids.push_back(int32_t(i * 64) + std::countr_zero(word));
      ASSERT_FALSE(ids.empty()) << text;
      // Quotes and braces end things that would otherwise go on.
      int32_t id = ids[random() % ids.size()];
      for (const std::string_view closer : {"}", "]", "<|\"|>"})
        if (const int32_t end = *tokenizer().find(closer);
            random() % 3 == 0 && allowed.contains(end))
          id = end;
      if (ended || id == stop_id()) continue;
      text += tokenizer().token_bytes(id);
      constraint->advance(id);
    }
    if (!ended) continue;
    ++finished;
    OutputParser parser(kGemmaOutput, false, spec.tools);
    std::vector<OutputEvent> events = parser.feed(text);
    for (OutputEvent& event : parser.finish()) events.push_back(std::move(event));
    std::string name, arguments;
    for (const OutputEvent& event : events) {
      EXPECT_NE(event.kind, OutputEvent::Kind::content) << text;
      if (event.kind == OutputEvent::Kind::tool_call_start) {
        name = event.text;
        arguments.clear();
      }
      if (event.kind == OutputEvent::Kind::tool_call_arguments) arguments += event.text;
      if (event.kind != OutputEvent::Kind::tool_call_end) continue;
      const Result<Json> parsed = parse_json(arguments, "arguments");
      ASSERT_TRUE(parsed.ok()) << arguments << "\n" << text;
      if (name != "weather") continue;
      const JsonObject& object = parsed.value().get_object();
      EXPECT_TRUE(object.at("city").is_string()) << text;
      EXPECT_TRUE(object.at("units") == "metric" || object.at("units") == "imperial") << text;
    }
  }
  EXPECT_GT(finished, 50);
}

TEST(BraceCalls, ParametersAreFoundWhereverTheSchemaLeads) {
  const auto fits = [](const std::string& parameters, const std::string& body) {
    ConstraintSpec spec = spec_of(ToolChoice::required);
    spec.tools = parse_json(R"([{"name": "f", "parameters": )" + parameters + "}]", "tools")
                     .value()
                     .get_array();
    return accepts(spec, "<|tool_call>call:f{" + body + "}<tool_call|>");
  };
  for (const char* parameters :
       {R"({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"n": {"type": "integer"}},
            "required": ["n"]}}})",
        R"({"allOf": [{"properties": {"n": {"type": "integer"}}}, {"required": ["n"]}]})",
        R"({"anyOf": [{"properties": {"n": {"type": "integer"}}, "required": ["n"]}]})"}) {
    EXPECT_TRUE(fits(parameters, "n:5")) << parameters;
    EXPECT_FALSE(fits(parameters, "")) << parameters;
    EXPECT_FALSE(fits(parameters, "n:5,m:6")) << parameters;
  }
  EXPECT_TRUE(fits(R"({"type": "object"})", R"(a:1,b:[<|"|>x<|"|>])"));
  EXPECT_TRUE(fits(R"({"type": "object"})", ""));
  EXPECT_FALSE(fits(R"({"type": "object", "additionalProperties": false})", "a:1"));
  EXPECT_TRUE(fits(R"({"required": ["x"]})", "x:1"));
  EXPECT_FALSE(fits(R"({"required": ["x"]})", ""));
  const char* typed = R"({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}})";
  EXPECT_TRUE(fits(typed, "a:true,b:1,c:2"));
  EXPECT_FALSE(fits(typed, "b:true"));
  EXPECT_FALSE(fits(typed, "a:1,a:2"));
}

TEST(BraceCalls, StrictToolsAreNotHalfFollowed) {
  ConstraintSpec spec = spec_of(ToolChoice::required);
  spec.strict = true;
  spec.tools = parse_json(R"([{"name": "f", "parameters": {"type": "object", "properties":
      {"a": {"type": "string", "pattern": "^x"}}}}])",
                          "tools")
                   .value()
                   .get_array();
  const int32_t stop = stop_id();
  const auto made = make_constraint(spec, TokenIndex::make(tokenizer()), std::span(&stop, 1));
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.failure().message.find("tool f"), std::string::npos) << made.failure().message;
  EXPECT_NE(made.failure().message.find("pattern"), std::string::npos);
}

}  // namespace
}  // namespace slip
