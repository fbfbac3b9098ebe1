#include "grammar/schema.h"

#include "tests/grammar/answers.h"

namespace slip {
namespace {

struct Case {
  const char* schema;
  std::vector<const char*> valid;
  std::vector<const char*> invalid;
};

void check_cases(const std::vector<Case>& cases, bool strict = false) {
  for (const Case& one : cases) {
    SCOPED_TRACE(one.schema);
    const ConstraintSpec spec = schema_spec(one.schema, strict);
    for (const char* text : one.valid) EXPECT_TRUE(accepts(spec, text)) << text;
    for (const char* text : one.invalid) EXPECT_FALSE(accepts(spec, text)) << text;
  }
}

TEST(Schema, Types) {
  check_cases({
      {R"({"type": "null"})", {"null"}, {"nul", "0", "nulll", " null", ""}},
      {R"({"type": "boolean"})", {"true", "false"}, {"True", "1"}},
      {R"({"type": "integer"})",
       {"0", "-7", "123456789012345678"},
       {"01", "1.5", "-", "1e3", "-01"}},
      {R"({"type": "number"})",
       {"0", "-0.5", "3.25", "1e5", "2.5E-10", "12"},
       {".5", "1.", "+1", "1e", "00", "1e1000"}},
      {R"({"type": "string"})",
       {R"("")", R"("a b")", R"("\n\"\\\/\u00e9")", R"("é😀")", R"("\ud83d\ude00")"},
       {"\"a", "\"\n\"", R"("\x")", R"("\ud83d")", R"("\ude00")", "'a'", "\"\xff\""}},
      {R"({"type": ["integer", "null"]})", {"1", "null"}, {"1.5", "true"}},
      {R"({"type": "integer", "nullable": true})", {"1", "null"}, {"false"}},
      {R"({})", {"1", "[]", "{}", R"({"a": [1, {"b": null}]})"}, {"", "[1,]", "{1:2}"}},
      {R"(true)", {"1"}, {""}},
  });
}

TEST(Schema, Objects) {
  check_cases({
      {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
           "required": ["a"], "additionalProperties": false})",
       {R"({"a": 1})", R"({"a":1,"b":"x"})", R"({"a": 1, "b": "x"})", "{\n  \"a\": 1\n}"},
       {R"({})", R"({"b":"x"})", R"({"a":1,"c":2})", R"({"a":"x"})", R"({"a":1,})", R"({"a":1)",
        R"({"b":"x","a":1})", R"({"a":1,"a":1})", R"({  "a":1})"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"}}})",
       {R"({})", R"({"a":1})", R"({"a":1,"zz":"any"})", R"({"aa":[],"b":2})"},
       {R"({"x":1,"a":"text"})", R"({"a":"x"})", R"({"\u0061":"x"})"}},
      {R"({"type": "object", "properties": {"ab": {"type": "integer"}, "é\"": {}},
           "additionalProperties": {"type": "null"}})",
       {R"({"a":null,"abc":null})", R"({"ab":1,"b":null,"":null})", R"({"é\"":2,"é":null})"},
       {R"({"ab":null})", R"({"a":1})", R"({"é\"":1,"é\"":2})"}},
      {R"({"type": "object", "required": ["x"]})", {R"({"x":[1]})", R"({"x":1,"y":2})"}, {"{}"}},
      {R"({"type": "object", "additionalProperties": false})", {"{}", "{ }"}, {R"({"a":1})"}},
      {R"({"properties": {"p": {"type": "null"}, "q": {"type": "null"}, "r": {"type": "null"}},
           "additionalProperties": false})",
       {"{}", R"({"p":null})", R"({"q":null})", R"({"r":null})", R"({"p":null,"r":null})",
        R"({"p":null,"q":null,"r":null})"},
       {R"({,"q":null})", R"({"p":null "q":null})", R"({"r":null,"p":null})"}},
  });
}

TEST(Schema, StrictClosesObjectsAndRefusesUnknownKeywords) {
  check_cases({{R"({"type": "object", "properties": {"a": {"type": "null"}}})",
                {"{}", R"({"a":null})"},
                {R"({"b":1})"}}},
              true);
  const auto made = try_constraint(schema_spec(R"({"type": "string", "minLenght": 2})", true));
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.failure().message.find("minLenght"), std::string::npos);
}

TEST(Schema, Arrays) {
  check_cases({
      {R"({"type": "array", "items": {"type": "integer"}})",
       {"[]", "[1]", "[1,2]", "[1, 2, 3]", "[\n  1,\n  2\n]", "[ ]"},
       {"[1,]", "[,1]", R"(["a"])", "[1 2]", "[  1]"}},
      {R"({"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 3})",
       {"[null,null]", "[null,null,null]"},
       {"[]", "[null]", "[null,null,null,null]"}},
      {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
      {R"({"type": "array", "minItems": 1, "maxItems": 1})", {"[1]"}, {"[]", "[1,1]"}},
      {R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false})",
       {"[]", "[1]", R"([1,"a"])"},
       {R"(["a"])", R"([1,"a",2])", "[1,2]"}},
      {R"({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "null"},
           "minItems": 2, "maxItems": 3})",
       {"[1,null]", "[1,null,null]"},
       {"[1]", "[1,1]", "[1,null,null,null]"}},
      {R"({"type": "array", "items": [{"type": "integer"}], "additionalItems": false})",
       {"[]", "[3]"},
       {"[3,3]"}},
      {R"({"type": "array", "items": {"type": "array", "items": {"type": "null"}, "minItems": 2,
           "maxItems": 20}, "minItems": 2, "maxItems": 30})",
       {"[[null,null],[null,null,null]]"},
       {"[[null,null]]", "[[null],[null,null]]"}},
  });
}

TEST(Schema, Strings) {
  check_cases({
      {R"({"type": "string", "minLength": 2, "maxLength": 4})",
       {R"("ab")", R"("éééé")", R"("\n\n\"")", R"("😀😀")", R"("\ud83d\ude00a")"},
       {R"("a")", R"("abcde")", R"("éé😀éé")", R"("\ud83d\ude00")"}},
      {R"({"type": "string", "maxLength": 100000})", {R"("abc")"}, {}},
      {R"({"type": "string", "pattern": "^[a-c]+$"})", {R"("abc")"}, {R"("")", R"("abd")"}},
      {R"({"type": "string", "pattern": "b"})", {R"("abc")", R"("b")", R"("\nb")"}, {R"("ac")"}},
      {R"({"type": "string", "pattern": "^a|z$"})", {R"("ab")", R"("bz")"}, {R"("ba")"}},
      {R"({"type": "string", "pattern": "^[^x]\\d\\\\$"})", {R"("\"1\\")"}, {R"("x1\\")"}},
      {R"({"type": "string", "pattern": "^[a-z]{2,3}$", "maxLength": 5})", {R"("ab")"}, {R"("a")"}},
      {R"({"type": "string", "format": "date"})",
       {R"("2024-02-28")", R"("1999-12-31")"},
       {R"("2024-13-01")", R"("2024-02-30")", R"("24-1-1")"}},
      {R"({"type": "string", "format": "date-time"})",
       {R"("2024-02-28T23:59:59Z")", R"("2024-02-28T00:00:00.5+02:00")"},
       {R"("2024-02-28 23:59:59Z")", R"("2024-02-28T24:00:00Z")"}},
      {R"({"type": "string", "format": "uuid"})",
       {R"("123e4567-e89b-12d3-a456-426614174000")"},
       {R"("123e4567e89b12d3a456426614174000")"}},
      {R"({"type": "string", "format": "email"})", {R"("jane.doe@example.com")"}, {R"("jane@")"}},
      {R"({"type": "string", "format": "ipv4"})", {R"("192.168.0.1")"}, {R"("256.1.1.1")"}},
      {R"({"type": "string", "format": "uri"})", {R"("https://a.example/x?y=1")"}, {R"("no uri")"}},
      {R"({"type": "string", "format": "of our own"})", {R"("anything")"}, {}},
  });
}

TEST(Schema, NumbersWithinBounds) {
  check_cases({
      {R"({"type": "integer", "minimum": 5, "maximum": 120})",
       {"5", "9", "10", "99", "100", "120"},
       {"4", "121", "-5", "05", "1000", "5.0"}},
      {R"({"type": "integer", "minimum": -12, "maximum": 3})",
       {"-12", "-1", "0", "3"},
       {"-13", "4", "-0"}},
      {R"({"type": "integer", "exclusiveMinimum": 0})", {"1", "999"}, {"0", "-1"}},
      {R"({"type": "integer", "maximum": -3})", {"-3", "-100"}, {"-2", "0", "3"}},
      {R"({"type": "integer", "minimum": 1.5, "exclusiveMaximum": 4})", {"2", "3"}, {"1", "4"}},
      {R"({"type": "number", "minimum": 0, "maximum": 1})",
       {"0", "0.5", "1", "1.0", "0.999"},
       {"1.1", "-0.1", "2", "1.01", "01"}},
      {R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})",
       {"0.5", "0.001", "0.10"},
       {"0", "1", "0.0", "1.0", "0.000"}},
      {R"({"type": "number", "minimum": -1.25, "maximum": 2.5})",
       {"-1.25", "-1.2", "-1", "0", "2.5", "2.49", "2.500", "-0.5", "1.75"},
       {"-1.26", "-1.3", "2.51", "-2", "3"}},
      {R"({"type": "number", "minimum": 3.14, "maximum": 3.15})",
       {"3.14", "3.141", "3.15", "3.149"},
       {"3.13", "3.151", "3", "3.1", "3.2"}},
      {R"({"type": "number", "exclusiveMaximum": 0})", {"-1", "-0.5"}, {"0", "-0", "0.1", "-0.0"}},
      {R"({"type": "number", "minimum": 10, "exclusiveMinimum": true})", {"10.5", "11"}, {"10"}},
  });
}

TEST(Schema, IntegerRangesAreExact) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    int low = int(random() % 2400) - 1200;
    int high = low + int(random() % (1 + random() % 1500));
    const std::string text =
        cat(R"({"type": "integer", "minimum": )", low, R"(, "maximum": )", high, "}");
    const std::unique_ptr<Constraint> start = constraint_of(schema_spec(text));
    for (int value = -3000; value <= 3000; value += 1 + int(random() % 3)) {
      const std::unique_ptr<Constraint> constraint = start->clone();
      const std::string digits = std::to_string(value);
      const bool accepted =
          accepted_bytes(*constraint, digits) == digits.size() && constraint->allows(stop_id());
      ASSERT_EQ(accepted, low <= value && value <= high) << value << " in " << text;
    }
  }
}

TEST(Schema, EnumsAndConstants) {
  check_cases({
      {R"({"enum": ["red", "reddish", "r", 5, 5.5, null, true, [1, 2], {"a": "b"}]})",
       {R"("red")", R"("reddish")", R"("r")", "5", "5.5", "null", "true", "[1,2]", R"({"a":"b"})"},
       {R"("re")", R"("")", "55", "[1]"}},
      {R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"}},
      {R"({"const": "x\"y"})", {R"("x\"y")"}, {R"("x")"}},
  });
}

TEST(Schema, CombinedSchemas) {
  check_cases({
      {R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]})",
       {"7", R"("a")"},
       {R"("ab")", "null"}},
      {R"({"oneOf": [{"const": 1}, {"const": "a"}]})", {"1", R"("a")"}, {"2"}},
      {R"({"type": "object", "properties": {"k": {"type": "string"}}, "additionalProperties": false,
           "anyOf": [{"required": ["k"]}, {"properties": {"k": {"const": "z"}}}]})",
       {R"({"k":"a"})", "{}"},
       {R"({"k":1})"}},
      {R"({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                     {"properties": {"b": {"type": "null"}, "a": {"minimum": 3}}, "required": ["b"]}],
           "additionalProperties": false, "properties": {"a": {}, "b": {}}})",
       {R"({"a":3,"b":null})"},
       {R"({"a":2,"b":null})", R"({"a":3})", R"({"b":null})"}},
      {R"({"allOf": [{"type": ["string", "number"]}, {"type": ["integer", "null"]}]})",
       {"3"},
       {"3.5", R"("a")", "null"}},
      {R"({"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}, {"const": 3}]})", {"3"}, {"2", "4"}},
  });
}

TEST(Schema, References) {
  check_cases({
      {R"({"$defs": {"n": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/n"}})",
       {"[1,2]"},
       {R"(["a"])"}},
      {R"({"type": "object", "properties": {"v": {"type": "integer"},
           "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["v", "next"],
           "additionalProperties": false})",
       {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":{"v":3,"next":null}}})"},
       {R"({"v":1})", R"({"v":1,"next":{"v":2}})"}},
      {R"({"definitions": {"a/b": {"type": "null"}}, "$ref": "#/definitions/a~1b"})",
       {"null"},
       {"1"}},
      {R"({"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 2})",
       {R"("ab")"},
       {R"("abc")"}},
      {R"({"type": "object", "properties": {"child": {"$ref": "#", "minProperties": 0}},
           "additionalProperties": false})",
       {R"({"child":{"child":{}}})"},
       {R"({"child":1})"}},
  });
}

TEST(Schema, RefusesByNameAndPath) {
  const struct {
    const char* schema;
    std::vector<const char*> named;
  } cases[] = {
      {R"({"type": "object", "properties": {"a": {"not": {}}}})", {"not", "#/properties/a"}},
      {R"({"type": "array", "items": {"multipleOf": 3}})", {"multipleOf", "#/items"}},
      {R"({"if": {}, "then": {}})", {"\"if\""}},
      {R"({"type": "array", "uniqueItems": true})", {"uniqueItems"}},
      {R"({"type": "object", "patternProperties": {"^a": {}}})", {"patternProperties"}},
      {R"x({"type": "string", "pattern": "(?=a)"})x", {"lookahead", "pattern"}},
      {R"x({"type": "string", "pattern": "(a)\\1"})x", {"back references"}},
      {R"({"type": "string", "pattern": "^a+$", "maxLength": 5})", {"maxLength"}},
      {R"({"$ref": "https://example.com/x"})", {"$ref"}},
      {R"({"$ref": "#/nowhere"})", {"$ref", "#/nowhere"}},
      {R"({"$ref": "#"})", {"itself"}},
      {R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})", {"itself"}},
      {R"({"type": "integer", "minimum": 5, "maximum": 4})", {"minimum"}},
      {R"({"type": "number", "minimum": 1e20})", {"bound"}},
      {R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
       {"no finite"}},
      {R"({"type": "object", "minProperties": 1})", {"minProperties"}},
      {R"({"type": "whatever"})", {"whatever"}},
      {R"({"type": "string", "minLength": -1})", {"minLength"}},
      {R"({"enum": []})", {"no finite"}},
      {R"(3)", {"expected a schema"}},
      {R"(false)", {"no finite"}},
  };
  for (const auto& one : cases) {
    const auto made = try_constraint(schema_spec(one.schema));
    ASSERT_FALSE(made.ok()) << one.schema;
    for (const char* name : one.named)
      EXPECT_NE(made.failure().message.find(name), std::string::npos)
          << one.schema << ": " << made.failure().message;
  }
}

TEST(Schema, JsonObject) {
  const ConstraintSpec spec{.kind = ConstraintSpec::Kind::json_object};
  EXPECT_TRUE(accepts(spec, R"({"a": [1, 2.5, {"b": "c\n"}], "d": null})"));
  EXPECT_TRUE(accepts(spec, "{}"));
  EXPECT_FALSE(accepts(spec, "[]"));
  EXPECT_FALSE(accepts(spec, "{} "));
}

}  // namespace
}  // namespace slip
