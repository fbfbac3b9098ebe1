// How long indexes, grammars and masks take. The limits are for a busy machine; the figures are
// printed.
#include <cstdio>
#include <ctime>
#include <functional>

#include "base/files.h"
#include "tests/grammar/answers.h"

namespace slip {
namespace {

double milliseconds_of(const std::function<void()>& work) {
  const std::clock_t start = std::clock();  // of this process: others do not disturb it
  work();
  return 1000.0 * double(std::clock() - start) / CLOCKS_PER_SEC;
}

// minnow's tokens and, until there are as many as Qwen3.5 has, pairs of them.
Tokenizer large_tokenizer() {
  constexpr size_t kTokens = 248'044;
  const std::string path = SLIP_SOURCE_DIR "/models/minnow/tokenizer.json";
  Json json = parse_json(read_text_file(path).value(), path).value();
  JsonObject& vocab = json.at("model").at("vocab").get_object();
  std::vector<std::string> texts;
  for (const auto& [text, id] : vocab) texts.emplace_back(text);
  json.at("added_tokens") = JsonArray();
  std::mt19937 random(1);
  while (vocab.size() < kTokens) {
    const std::string pair = texts[random() % texts.size()] + texts[random() % texts.size()];
    if (!vocab.contains(pair)) vocab[pair] = vocab.size();
  }
  return Tokenizer::from_json(dump_json(json), "large").value();
}

const char* const kPerson = R"({"type": "object", "properties": {
  "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
  "email": {"type": "string", "format": "email"}, "notes": {"type": "string", "maxLength": 500},
  "roles": {"type": "array", "items": {"enum": ["admin", "editor", "viewer"]}, "maxItems": 3},
  "address": {"type": "object", "properties": {"street": {"type": "string"},
    "zip": {"type": "string", "pattern": "^[0-9]{5}$"}}, "required": ["street"]}},
  "required": ["name", "age", "roles", "address"], "additionalProperties": false})";
const char* const kAnswer =
    R"({"name": "Jane Doe the third", "age": 42, "email": "jane@example.com", "notes": "Likes tea)"
    R"( and long walks; does not like forms.", "roles": ["admin", "viewer"], "address": )"
    R"({"street": "1 Long Lane", "zip": "12345"}})";

struct MaskTimes {
  double median = 0;
  double worst = 0;
};

// Masks at every byte of an answer.
MaskTimes mask_times(Constraint& constraint, const TokenIndex& tokens, std::string_view answer) {
  std::vector<int32_t> byte_ids(256, -1);
  for (int32_t id = 0; id < tokens.vocabulary(); ++id)
    if (tokens.bytes(id).size() == 1) byte_ids[uint8_t(tokens.bytes(id)[0])] = id;
  std::vector<double> times;
  for (const char byte : answer) {
    times.push_back(milliseconds_of([&] { constraint.allowed(); }));
    constraint.advance(byte_ids[uint8_t(byte)]);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.back()};
}

void measure(const char* name, const Tokenizer& tokenizer) {
  std::shared_ptr<const TokenIndex> tokens;
  const double index = milliseconds_of([&] { tokens = TokenIndex::make(tokenizer); });
  std::printf("%s: %d tokens, index %.1f ms\n", name, tokens->vocabulary(), index);
  EXPECT_LT(index, 3000);

  const struct {
    const char* name;
    ConstraintSpec spec;
    const char* answer;
  } cases[] = {
      {"json_object", {.kind = ConstraintSpec::Kind::json_object}, kAnswer},
      {"person schema", schema_spec(kPerson), kAnswer},
      {"short strings",
       schema_spec(R"({"type": "array", "items": {"type": "string", "maxLength": 20}})"),
       R"(["short text", "another one", "a third"])"},
      {"pattern", schema_spec(R"({"type": "string", "pattern": "^[a-z ]+$"})"),
       R"("only lower case")"},
      {"regex .*", regex_spec(".*"), "anything goes here"},
  };
  for (const auto& one : cases) {
    std::unique_ptr<Constraint> constraint;
    const double compile =
        milliseconds_of([&] { constraint = make_constraint(one.spec, tokens, {}).value(); });
    const std::unique_ptr<Constraint> again = constraint->clone();
    const MaskTimes first = mask_times(*constraint, *tokens, one.answer);
    const MaskTimes then = mask_times(*again, *tokens, one.answer);
    std::printf("  %-14s compile %.2f ms; mask: median %.3f ms, worst %.2f ms; again: %.3f, %.2f\n",
                one.name, compile, first.median, first.worst, then.median, then.worst);
    EXPECT_LT(compile, 100);
    EXPECT_LT(first.median, 20);
    EXPECT_LT(first.worst, 1000);
  }
}

TEST(GrammarSpeed, SmallVocabulary) { measure("minnow", minnow_tokenizer()); }
TEST(GrammarSpeed, LargeVocabulary) { measure("as large as Qwen3.5's", large_tokenizer()); }

}  // namespace
}  // namespace slip
