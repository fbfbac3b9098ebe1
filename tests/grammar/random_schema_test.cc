// Random schemas, and random answers that their grammars allow.
#include <cmath>

#include "tests/grammar/answers.h"
#include "tests/grammar/validator.h"

namespace slip {
namespace {

class SchemaMaker {
 public:
  explicit SchemaMaker(std::mt19937& random) : random_(random) {}

  Json make() {
    Json root = schema(3);
    if (!root.is_object()) root = JsonObject{{"type", "array"}, {"items", root}};
    root.get_object()["$defs"] = JsonObject{{"leaf", schema(0)}, {"pair", schema(1)}};
    return root;
  }

 private:
  int pick(int count) { return int(random_() % unsigned(count)); }
  bool coin() { return pick(2) == 0; }

  JsonObject schema(int depth) {
    switch (pick(depth > 0 ? 11 : 6)) {
      case 0: return {{"type", coin() ? "boolean" : "null"}};
      case 1: return integer();
      case 2: return number();
      case 3: return string();
      case 4: return values();
      case 5: return {{"type", JsonArray{"string", "null"}}, {"maxLength", 5 + pick(5)}};
      case 6:
      case 7: return object(depth);
      case 8: return array(depth);
      case 9: return {{"anyOf", JsonArray{schema(depth - 1), schema(depth - 1)}}};
      default:
        if (coin()) return {{"$ref", coin() ? "#/$defs/leaf" : "#/$defs/pair"}};
        return {{"anyOf", JsonArray{JsonObject{{"type", "null"}},
                                    JsonObject{{"type", "array"},
                                               {"items", JsonObject{{"$ref", "#"}}},
                                               {"maxItems", 2}}}}};
    }
  }

  JsonObject integer() {
    JsonObject made = {{"type", "integer"}};
    const int low = pick(2000) - 1000;
    if (coin()) made[coin() ? "minimum" : "exclusiveMinimum"] = low;
    if (coin()) made[coin() ? "maximum" : "exclusiveMaximum"] = low + 2 + pick(5000);
    return made;
  }

  JsonObject number() {
    JsonObject made = {{"type", "number"}};
    const double low = double(pick(4000) - 2000) / double(pick(2) ? 8 : 100);
    if (coin()) made[coin() ? "minimum" : "exclusiveMinimum"] = low;
    if (coin()) made[coin() ? "maximum" : "exclusiveMaximum"] = low + 0.25 + double(pick(100));
    return made;
  }

  JsonObject string() {
    JsonObject made = {{"type", "string"}};
    const char* const patterns[] = {"^[a-z]{2,8}$", "^(\\d{3}-)?\\d{4}$", "a.*b", "^[A-F]+x?$"};
    if (pick(3) == 0) {
      made["pattern"] = patterns[pick(4)];
      return made;
    }
    const int shortest = pick(6);
    if (coin()) made["minLength"] = shortest;
    if (coin()) made["maxLength"] = shortest + pick(12);
    return made;
  }

  JsonObject values() {
    const JsonArray all = {"red", "green", "gr\"een", 1, 2.5, nullptr, true, JsonArray{1}, "é"};
    JsonArray some;
    for (const Json& value : all)
      if (coin()) some.push_back(value);
    if (some.empty()) return {{"const", all[size_t(pick(9))]}};
    return {{"enum", some}};
  }

  JsonObject object(int depth) {
    JsonObject properties;
    JsonArray required;
    const char* const names[] = {"a", "ab", "name", "with space", "é", "quo\"te"};
    for (const char* name : names) {
      if (coin()) continue;
      properties[name] = schema(depth - 1);
      if (coin()) required.push_back(name);
    }
    JsonObject made = {{"type", "object"}, {"properties", properties}, {"required", required}};
    if (coin()) made["additionalProperties"] = false;
    if (pick(4) == 0) made["additionalProperties"] = schema(0);
    if (pick(5) == 0)
      made["allOf"] = JsonArray{JsonObject{{"properties", JsonObject{{"name", schema(0)}}}}};
    return made;
  }

  JsonObject array(int depth) {
    JsonObject made = {{"type", "array"}, {"items", schema(depth - 1)}};
    const int fewest = pick(3);
    if (coin()) made["minItems"] = fewest;
    if (coin()) made["maxItems"] = fewest + pick(3);
    if (pick(4) == 0) made["prefixItems"] = JsonArray{schema(0), schema(depth - 1)};
    return made;
  }

  std::mt19937& random_;
};

TEST(RandomSchemas, EveryAnswerFits) {
  std::mt19937 random(99);
  SchemaMaker maker(random);
  int finished = 0;
  int refused = 0;
  int unfinished = 0;
  for (int round = 0; round < 400; ++round) {
    const Json schema = maker.make();
    const std::string shown = dump_json(schema);
    Result<std::unique_ptr<Constraint>> made =
        try_constraint(spec_of_schema(schema, round % 2 == 0));
    if (!made.ok()) {
      // Merged parts may contradict each other, or ask for what cannot be merged.
      ++refused;
      EXPECT_NE(shown.find("allOf"), std::string::npos) << made.failure().message << "\n" << shown;
      continue;
    }
    for (int answer = 0; answer < 3; ++answer) {
      const std::unique_ptr<Constraint> constraint = made.value()->clone();
      const std::optional<std::string> text = random_answer(*constraint, random, 600);
      if (!text) {
        ++unfinished;
        continue;
      }
      ++finished;
      const Result<Json> parsed = parse_json(*text, "answer");
      ASSERT_TRUE(parsed.ok()) << parsed.failure().message << "\n" << *text << "\n" << shown;
      ASSERT_TRUE(Validator(schema).fits(schema, parsed.value())) << *text << "\n" << shown;
    }
  }
  std::printf("%d answers fit, %d unfinished, %d schemas refused\n", finished, unfinished, refused);
  EXPECT_GT(finished, 900);
}

}  // namespace
}  // namespace slip
