// Requests that would be expensive are refused or bounded, quickly.
#include <sys/resource.h>

#include <ctime>
#include <functional>

#include "tests/grammar/answers.h"

namespace slip {
namespace {

constexpr double kQuick = 15;  // seconds of this process, with sanitizers and on a busy machine

double seconds_of(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return double(std::clock() - start) / CLOCKS_PER_SEC;
}

// Of this process so far, in bytes.
int64_t peak_memory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) * 1024;
}

// Makes it and, if it can be made, writes some of an answer.
void expect_bounded(const ConstraintSpec& spec, const std::string& name) {
  const double seconds = seconds_of([&] {
    Result<std::unique_ptr<Constraint>> made = try_constraint(spec);
    if (!made.ok()) {
      EXPECT_FALSE(made.failure().message.empty());
      return;
    }
    std::mt19937 random(1);
    random_answer(*made.value(), random, 30);
  });
  EXPECT_LT(seconds, kQuick) << name;
}

std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Limits, CatastrophicPatterns) {
  for (const std::string& pattern :
       {std::string("(a|a)*b"), std::string("(a*)*b"), std::string("(a|aa)+$"),
        std::string("(.*)(.*)(.*)(.*)(.*)[^a]"), std::string("(a{1,100}){1,100}"),
        std::string("((a{1,100}){1,100}){1,100}"), std::string("([a-z]{1,100}){1,100}"),
        std::string("(\\w|\\w\\w|\\w\\w\\w){1,1000}x"), std::string(".{0,1000}.{0,1000}.{0,1000}"),
        std::string("(.|a)*(.|b)*c{500}"), std::string("(a|b)*a(a|b){20}"),
        std::string("a{1000000}"), repeated("(", 5000), repeated("a?", 2000) + repeated("a", 2000),
        repeated("(a|", 90) + "b" + repeated(")*", 90), repeated("[\\p{L}]", 200),
        repeated("\\p{L}{1,50}", 40), repeated("x*", 8000), "a" + repeated("{2}", 900)})
    expect_bounded(regex_spec(pattern), pattern.substr(0, 60));
}

// So many readings that only some are followed: masks and single tokens still agree, and there is
// always a way on.
TEST(Limits, ManyReadings) {
  const std::unique_ptr<Constraint> constraint =
      constraint_of(regex_spec("((.{1,3}|.{2,5}){1,99}(.{1,7}|[a-z]{3,9}){1,99}){1,99}"));
  std::mt19937 random(8);
  EXPECT_LT(seconds_of([&] {
              for (int step = 0; step < 5; ++step) {
                const TokenSet allowed = constraint->allowed();
                std::vector<int32_t> ids;
                for (int i = 0; i < 300; ++i) {
                  const int32_t id = int32_t(random() % unsigned(minnow_tokens()->vocabulary()));
                  ASSERT_EQ(allowed.contains(id), constraint->allows(id)) << id;
                  if (id != stop_id() && allowed.contains(id)) ids.push_back(id);
                }
                ASSERT_FALSE(ids.empty());
                constraint->advance(ids.front());
              }
            }),
            4 * kQuick);
}

// Writes random allowed tokens until the answer may only end or the constraint gives up; returns
// how many.
int write_randomly(Constraint& constraint, int max_tokens) {
  std::mt19937 random(5);
  for (int step = 0; step < max_tokens; ++step) {
    TokenSet allowed = constraint.allowed();
    if (constraint.failure()) return step;
    allowed.remove(stop_id());
    const int64_t size = allowed.size();
    if (size == 0) return step;
    int64_t skipped = int64_t(random() % uint64_t(size));
    int32_t id = 0;
    while (!allowed.contains(id) || skipped-- > 0) ++id;
    constraint.advance(id);
  }
  return max_tokens;
}

const char* const kAmbiguous =
    "root ::= e\n"
    "e ::= \"(\" e \")\" e | [a-z ] e | [a-z ] e e | [a-z ] [a-z ] e | [a-z ]\n";

// With all readings each mask takes 6 ms on an idle machine.
TEST(Limits, AmbiguousGrammarsBecomeCheap) {
  const std::unique_ptr<Constraint> constraint =
      constraint_of({.kind = ConstraintSpec::Kind::grammar, .text = kAmbiguous});
  EXPECT_LT(seconds_of([&] { EXPECT_EQ(write_randomly(*constraint, 4000), 4000); }), kQuick);
  EXPECT_FALSE(constraint->failure());
}

TEST(Limits, AnswersThatStayExpensiveAreGivenUp) {
  // Behind each letter much is called that writes nothing, each turn has rules of its own, and
  // there are too many ways to keep what is known about their tokens.
  std::string junk;
  for (int i = 0; i < 100; ++i) junk += cat("[#%] \"", i, "\" | ");
  std::string rules = "root ::= a-0\nempty ::= \"\"\nnothing ::= " + repeated("empty ", 1200);
  for (int turn = 0; turn < 4; ++turn) {
    std::string ways = junk + "\".\"";
    for (char letter = 'a'; letter < 'g'; ++letter)
      ways += cat(" | \"", letter, "\" ", letter, "-", (turn + 1) % 4);
    for (char letter = 'a'; letter < 'g'; ++letter)
      rules += cat("\n", letter, "-", turn, " ::= nothing (", ways, ")");
  }
  const std::unique_ptr<Constraint> constraint =
      constraint_of({.kind = ConstraintSpec::Kind::grammar, .text = rules});
  const std::unique_ptr<Constraint> other = constraint->clone();
  EXPECT_LT(seconds_of([&] {
              for (int step = 0; step < 5000 && !constraint->failure(); ++step) {
                const TokenSet& allowed = constraint->allowed();
                ASSERT_TRUE(allowed.contains(byte_token('a'))) << step;
                constraint->advance(byte_token('a'));
              }
            }),
            kQuick);
  ASSERT_TRUE(constraint->failure());
  EXPECT_NE(constraint->failure()->message.find("too ambiguous"), std::string::npos);
  EXPECT_TRUE(constraint->free());
  constraint->advance(byte_token('0'));
  EXPECT_TRUE(other->failure());
}

// Of more readings than are followed, one takes any text.
TEST(Limits, ReadingsThatAreCutMayTakeAnyText) {
  std::string pattern = "t(";
  for (int i = 0; i < 600; ++i) pattern += "[ab]" + std::to_string(i) + "|";
  const std::unique_ptr<Constraint> constraint = constraint_of(regex_spec(pattern + "c)|t.*"));
  const TokenSet allowed = constraint->allowed();
  for (int32_t id = 0; id < minnow_tokens()->vocabulary(); ++id)
    ASSERT_EQ(allowed.contains(id), constraint->allows(id)) << minnow_tokens()->bytes(id);
}

TEST(Limits, AmbiguousPatternsKeepTheirMeaning) {
  EXPECT_TRUE(accepts(regex_spec("(a{1,100}){1,100}"), repeated("a", 5000)));
  EXPECT_TRUE(accepts(regex_spec("(a|a)*b"), repeated("a", 500) + "b"));
  const ConstraintSpec twentieth = regex_spec("(a|b)*a(a|b){20}");
  EXPECT_TRUE(accepts(twentieth, repeated("ab", 100) + repeated("b", 19)));
  EXPECT_FALSE(accepts(twentieth, repeated("ab", 100) + repeated("b", 20)));
}

TEST(Limits, NestedAnswersStayReadable) {
  const std::unique_ptr<Constraint> constraint =
      constraint_of({.kind = ConstraintSpec::Kind::json_object});
  std::string text;
  for (int i = 0; i < 500; ++i) {
    const std::string deeper = i % 2 ? "[" : "{\"a\":";
    const std::unique_ptr<Constraint> trial = constraint->clone();
    if (accepted_bytes(*trial, deeper) < deeper.size()) break;
    text += deeper;
    accepted_bytes(*constraint, deeper);
  }
  std::mt19937 random(2);
  const std::optional<std::string> rest = random_answer(*constraint, random, 3000);
  ASSERT_TRUE(rest);
  const Result<Json> parsed = parse_json(text + *rest, "answer");
  EXPECT_TRUE(parsed.ok()) << parsed.failure().message;
}

TEST(Limits, LargeSchemas) {
  std::string values;
  for (int i = 0; i < 3000; ++i) values += cat(i ? "," : "", "\"value number ", i * 7919, "\"");
  const ConstraintSpec many = schema_spec("{\"enum\": [" + values + "]}");
  EXPECT_LT(seconds_of([&] { EXPECT_TRUE(accepts(many, "\"value number 7919\"")); }), kQuick);

  const std::string too_many = "{\"enum\": [\"" + std::string(200'000, 'x') + "\"]}";
  const auto refused = try_constraint(schema_spec(too_many));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.failure().message.find("enum"), std::string::npos);

  std::string properties;
  for (int i = 0; i < 900; ++i)
    properties += cat(i ? "," : "", "\"p", i, "\": {\"type\": \"integer\", \"minimum\": ", i, "}");
  expect_bounded(schema_spec("{\"type\": \"object\", \"properties\": {" + properties + "}}"),
                 "900 optional properties");

  std::string ways;
  for (int i = 0; i < 150; ++i)
    ways += cat(i ? "," : "", R"({"type": "object", "properties": {"kind": {"const": "k)", i,
                R"("}, "v": {"type": "string"}}, "required": ["kind"]})");
  const ConstraintSpec alternatives = schema_spec("{\"anyOf\": [" + ways + "]}");
  EXPECT_TRUE(accepts(alternatives, R"({"kind": "k149", "v": "x"})"));
  expect_bounded(alternatives, "150 alternatives");
}

// 200 alternatives beside `rest`, which holds for each of them.
ConstraintSpec alternatives_beside(const std::string& rest) {
  std::string ways;
  for (int i = 0; i < 200; ++i)
    ways += cat(i ? "," : "", R"({"required": ["a"], "title": ")", i, "\"}");
  return schema_spec(
      cat("{", rest, R"(, "properties": {"a": {"type": "null"}}, "anyOf": [)", ways, "]}"));
}

void expect_refused(const ConstraintSpec& spec, const std::string& words) {
  const auto made = try_constraint(spec);
  ASSERT_FALSE(made.ok()) << words;
  EXPECT_NE(made.failure().message.find(words), std::string::npos) << made.failure().message;
  EXPECT_LT(made.failure().message.size(), 2000u);
}

TEST(Limits, SchemasTakeLittleMoreMemoryThanTheirText) {
  minnow_tokens();
  [[maybe_unused]] const int64_t before = peak_memory();
  const std::string words(200'000, 'd');
  EXPECT_TRUE(
      accepts(alternatives_beside(cat(R"("description": ")", words, "\"")), "{\"a\": null}"));
  expect_refused(alternatives_beside(cat(R"("items": {"description": ")", words, "\"}")),
                 "grows beyond");
  expect_refused(alternatives_beside(cat(R"("title": ")", std::string(600'000, 't'), "\"")),
                 "at most 524288");
  std::string references;
  for (int i = 0; i < 200; ++i)
    references += cat(R"(, {"$ref": "#/$defs/a", "maxLength": )", i, "}");
  expect_refused(schema_spec(cat(R"({"$defs": {"a": {"items": {"title": ")", words,
                                 R"("}}}, "prefixItems": [true)", references, "]}")),
                 "grows beyond");
  // The place of a part in its schema is kept with it.
  std::string properties;
  for (int i = 0; i < 1000; ++i) properties += cat(i ? "," : "", "\"", i, "\": {}");
  std::string nested = "{\"properties\": {" + properties + "}}";
  for (int i = 0; i < 28; ++i)
    nested = cat(R"({"additionalProperties": false, "properties": {")", std::string(1000, 'n'),
                 "\": ", nested, "}}");
  expect_bounded(schema_spec(nested), "a long way to many properties");
#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
  EXPECT_LT(peak_memory() - before, 150 << 20);
#endif
}

TEST(Limits, LongNamesOfProperties) {
  for (const size_t length : {257u, 10'000u, 300'000u})
    expect_refused(schema_spec("{\"properties\": {\"" + std::string(length, 'n') + "\": {}}}"),
                   "the name of a property has");
  const auto schema_with = [](size_t length, const std::string& rest) {
    return schema_spec(cat("{\"properties\": {\"", std::string(length, 'n'), "\": {}}", rest, "}"));
  };
  EXPECT_TRUE(try_constraint(schema_with(256, "")).ok());
  EXPECT_TRUE(try_constraint(schema_with(100'000, ", \"additionalProperties\": false")).ok());
  std::mt19937 random(4);
  std::string properties;
  for (int i = 0; i < 1000; ++i) {
    std::string name;
    for (int j = 0; j < 200; ++j) name += char('a' + random() % 26);
    properties += cat(i ? "," : "", "\"", name, "\": {}");
  }
  EXPECT_LT(seconds_of([&] {
              expect_refused(schema_spec("{\"properties\": {" + properties + "}}"),
                             "the names of properties");
            }),
            kQuick);
}

// Lists that are merged are as long as the schema may be.
TEST(Limits, LongListsThatMeet) {
  std::string numbers = "-1";
  for (int i = 0; i < 40'000; ++i) numbers += cat(",", i);
  std::string names = "\"a\"";
  for (int i = 0; i < 25'000; ++i) names += cat(",\"", i, "\"");
  EXPECT_LT(seconds_of([&] {
              for (const auto& [keyword, list] :
                   {std::pair{"enum", numbers}, {"required", names}, {"type", names}})
                expect_bounded(schema_spec(cat(R"({"allOf": [{")", keyword, "\": [", list,
                                               "]}, {\"", keyword, "\": [", list, ", \"z\"]}]}")),
                               keyword);
            }),
            kQuick);
}

TEST(Limits, ManyChoices) {
  ConstraintSpec spec{.kind = ConstraintSpec::Kind::choice};
  for (int i = 0; i < 100'000; ++i) spec.choices.push_back(std::to_string(i));
  expect_refused(spec, "the choices together");
}

TEST(Limits, DeepSchemas) {
  JsonObject inner = {{"type", "null"}};
  for (int i = 0; i < 60; ++i) inner = JsonObject{{"type", "array"}, {"items", std::move(inner)}};
  EXPECT_TRUE(accepts(spec_of_schema(inner), repeated("[", 60) + repeated("]", 60)));
  for (int i = 0; i < 500; ++i) inner = JsonObject{{"type", "array"}, {"items", std::move(inner)}};
  const auto refused = try_constraint(spec_of_schema(inner));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.failure().message.find("deeper"), std::string::npos);

  JsonObject all = {{"type", "null"}};
  for (int i = 0; i < 500; ++i) all = JsonObject{{"allOf", JsonArray{std::move(all)}}};
  EXPECT_FALSE(try_constraint(spec_of_schema(all)).ok());
}

TEST(Limits, ReferencesThatGrow) {
  expect_bounded(
      schema_spec(R"({"$defs": {"a": {"properties": {"x": {"allOf": [{"$ref": "#/$defs/a"},
      {"$ref": "#/$defs/b"}]}}}, "b": {"properties": {"x": {"$ref": "#/$defs/a"}, "y":
      {"allOf": [{"$ref": "#/$defs/b"}, {"properties": {"z": {"$ref": "#/$defs/a"}}}]}}}},
      "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]})"),
      "references within allOf");
  expect_bounded(schema_spec(R"({"allOf": [{"$ref": "#"}]})"), "a ring of allOf");
  expect_bounded(schema_spec(R"({"$ref": "#/a", "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}})"),
                 "a ring of $ref");
  // Each level names the one below twice.
  std::string definitions = R"("d0": {"type": "null"})";
  for (int i = 1; i < 40; ++i)
    definitions += cat(", \"d", i, R"(": {"type": "array", "prefixItems": [{"$ref": "#/$defs/d)",
                       i - 1, R"("}, {"$ref": "#/$defs/d)", i - 1, "\"}]}");
  expect_bounded(schema_spec("{\"$defs\": {" + definitions + "}, \"$ref\": \"#/$defs/d39\"}"),
                 "doubling references");
}

}  // namespace
}  // namespace slip
