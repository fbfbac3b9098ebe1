#include "grammar/masks.h"

#include "tests/grammar/answers.h"

namespace slip {
namespace {

std::vector<ConstraintSpec> many_kinds() {
  std::vector<ConstraintSpec> specs = {
      {.kind = ConstraintSpec::Kind::json_object},
      schema_spec(R"({"type": "object", "properties": {"name": {"type": "string"},
          "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
          "age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["name"]})"),
      schema_spec(R"({"type": "string", "minLength": 3, "maxLength": 9})"),
      schema_spec(R"({"type": "string", "maxLength": 2000})"),
      schema_spec(R"({"type": "string", "pattern": "^.*end.*$"})"),
      schema_spec(R"({"type": "array", "items": {"type": "array", "items": {}}, "minItems": 2})"),
      schema_spec(R"({"anyOf": [{"type": "object", "properties": {"kind": {"const": "a"}},
          "required": ["kind"]}, {"type": "object", "properties": {"kind": {"const": "b"},
          "next": {"$ref": "#"}}, "required": ["kind", "next"], "additionalProperties": false}]})"),
      regex_spec(R"([A-Z][a-z]{1,20}( [A-Z]\.)? [\w-]+, (the|a|an) .{3,40})"),
      regex_spec(R"(([a-z]{1,10} ){1,10}[^\d]*)"),
      {.kind = ConstraintSpec::Kind::choice, .choices = {"yes", "yes please", "no", "é"}},
      {.kind = ConstraintSpec::Kind::grammar,
       .text = "root ::= item (\", \" item)*\nitem ::= [a-zé]+ | \"(\" root \")\"\n"},
  };
  const Json tools = parse_json(R"([{"type": "function", "function": {"name": "look_up",
      "parameters": {"type": "object", "properties": {"word": {"type": "string"},
      "limit": {"type": "integer"}}, "required": ["word"]}}}])",
                                "tools")
                         .value();
  for (const ToolChoice choice : {ToolChoice::automatic, ToolChoice::required})
    for (const Thoughts thoughts : {Thoughts::none, Thoughts::begun, Thoughts::may_begin})
      specs.push_back({.kind = ConstraintSpec::Kind::tool_calls,
                       .tools = tools.get_array(),
                       .tool_choice = choice,
                       .thoughts = thoughts});
  specs.push_back({.kind = ConstraintSpec::Kind::json_object, .thoughts = Thoughts::begun});
  return specs;
}

// allows() walks one token's bytes and knows nothing of what masks remember.
void expect_same_as_one_by_one(Constraint& constraint, const std::string& text) {
  const TokenSet allowed = constraint.allowed();
  for (int32_t id = 0; id < minnow_tokens()->vocabulary(); ++id)
    ASSERT_EQ(allowed.contains(id), constraint.allows(id))
        << "token " << id << " '" << minnow_tokens()->bytes(id) << "' after: " << text;
}

TEST(Masks, AreTheTokensAllowedOneByOne) {
  std::mt19937 random(11);
  for (const ConstraintSpec& spec : many_kinds()) {
    const std::unique_ptr<Constraint> start = constraint_of(spec);
    ASSERT_TRUE(start);
    for (int round = 0; round < 2; ++round) {
      const std::unique_ptr<Constraint> constraint = start->clone();
      std::string text;
      for (int step = 0; step < 25; ++step) {
        expect_same_as_one_by_one(*constraint, text);
        if (testing::Test::HasFatalFailure()) return;
        const TokenSet& allowed = constraint->allowed();
        std::vector<int32_t> ids;
        for (int32_t id = 0; id < minnow_tokens()->vocabulary(); ++id)
          if (id != stop_id() && allowed.contains(id)) ids.push_back(id);
        if (ids.empty()) break;
        const int32_t id = ids[random() % ids.size()];
        text += minnow_tokens()->bytes(id);
        constraint->advance(id);
      }
    }
  }
}

TEST(Masks, HoldNearTheLimitOfNesting) {
  const std::unique_ptr<Constraint> constraint =
      constraint_of(schema_spec(R"({"type": "array", "items": {"anyOf": [{"$ref": "#"},
          {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}]}})"));
  std::string text;
  for (int depth = 0; depth < 200; ++depth) {
    const int32_t open = byte_token('[');
    expect_same_as_one_by_one(*constraint, text);
    if (testing::Test::HasFatalFailure()) return;
    if (!constraint->allows(open)) {
      EXPECT_GT(depth, 20);
      EXPECT_TRUE(constraint->allows(byte_token(']')));
      std::mt19937 random(3);
      EXPECT_TRUE(random_answer(*constraint, random, 2000));
      return;
    }
    constraint->advance(open);
    text += '[';
  }
  FAIL() << "arrays nest without a limit";
}

TEST(Masks, ClonesAreIndependent) {
  const std::unique_ptr<Constraint> first =
      constraint_of(schema_spec(R"({"type": "array", "items": {"type": "integer"}})"));
  ASSERT_EQ(accepted_bytes(*first, "[12"), 3u);
  const std::unique_ptr<Constraint> second = first->clone();
  ASSERT_EQ(accepted_bytes(*second, ",3]"), 3u);
  EXPECT_TRUE(second->allows(stop_id()));
  EXPECT_FALSE(first->allows(stop_id()));
  EXPECT_EQ(accepted_bytes(*first, "4]"), 2u);
  EXPECT_TRUE(first->allows(stop_id()));
}

TEST(Masks, SpecialTokensAreNeverText) {
  const std::unique_ptr<Constraint> constraint =
      constraint_of(schema_spec(R"({"type": "string"})"));
  ASSERT_EQ(accepted_bytes(*constraint, "\"a"), 2u);
  const TokenSet& allowed = constraint->allowed();
  for (const char* text : {"<|im_start|>", "<|im_end|>", "<|endoftext|>"})
    EXPECT_FALSE(allowed.contains(*minnow_tokenizer().find(text))) << text;
  EXPECT_FALSE(constraint->allows(-1));
  EXPECT_FALSE(constraint->allows(1 << 30));
}

}  // namespace
}  // namespace slip
