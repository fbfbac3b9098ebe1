#include "grammar/gbnf.h"

#include "tests/grammar/answers.h"

namespace slip {
namespace {

ConstraintSpec grammar_spec(std::string text) {
  return {.kind = ConstraintSpec::Kind::grammar, .text = std::move(text)};
}

TEST(Gbnf, Accepts) {
  const ConstraintSpec sum = grammar_spec(R"x(# sums
root  ::= term (ws "+" ws term)*   # one or more
term  ::= [0-9]{1,3} | "(" ws root ws ")" | name
name  ::= [a-z_]
          | "\u00e9" [^a-z\]\n]?
ws    ::= " "?
)x");
  for (const char* text : {"1", "1+2", "(1 + 234) + x", "((1))", "é!", "é"})
    EXPECT_TRUE(accepts(sum, text)) << text;
  for (const char* text : {"", "1+", "(1", "1234", "éa", "1  + 2"})
    EXPECT_FALSE(accepts(sum, text)) << text;
  EXPECT_TRUE(accepts(grammar_spec("root ::= \"a\\\"\\n\" . \"\"\n"), "a\"\n😀"));
}

TEST(Gbnf, Refuses) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "root"},
      {"start ::= \"a\"", "root"},
      {"root ::= other", "other"},
      {"root ::= root \"a\" | \"b\"", "itself"},
      {"root ::= a\na ::= b?\nb ::= a", "itself"},
      {"root ::= \"a\" root", "no finite"},
      {"root ::= \"a", "unfinished"},
      {"root ::= [a", "unfinished"},
      {"root ::= (\"a\"", "missing"},
      {"root = \"a\"", "::="},
      {"root ::= \"a\"\nroot ::= \"b\"", "twice"},
      {"root ::= \"a\"{3,1}", "reversed"},
      {"root ::= \"\\q\"", "escape"},
  };
  for (const auto& [text, name] : cases) {
    const auto made = try_constraint(grammar_spec(text));
    ASSERT_FALSE(made.ok()) << text;
    EXPECT_NE(made.failure().message.find(name), std::string::npos)
        << text << ": " << made.failure().message;
  }
}

TEST(Choice, IsOneOfTheTexts) {
  const ConstraintSpec spec{.kind = ConstraintSpec::Kind::choice,
                            .choices = {"yes", "yes, but", "no", "日本"}};
  for (const std::string& text : spec.choices) EXPECT_TRUE(accepts(spec, text)) << text;
  for (const char* text : {"", "ye", "yes,", "nono", "日"})
    EXPECT_FALSE(accepts(spec, text)) << text;
  EXPECT_FALSE(try_constraint({.kind = ConstraintSpec::Kind::choice}).ok());
}

}  // namespace
}  // namespace slip
