#include "text/tool_calls_value.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

std::string converted(const std::string& text, const std::string& schema) {
  const std::string tools = R"([{"name": "g"}, {"name": "f", "input_schema": {"$defs": {"Unit":
      {"enum": [1, 2]}, "Ring": {"$ref": "#/$defs/Ring"}}, "properties": {"p": )" +
                            schema + "}}}]";
  return convert_parameter(
      text, find_parameter_types(parse_json(tools, "tools").value().get_array(), "f", "p"));
}

TEST(ToolCallValue, Integers) {
  EXPECT_EQ(converted(" 42 ", R"({"type": "integer"})"), "42");
  EXPECT_EQ(converted("-007", R"({"type": "integer"})"), "-7");
  EXPECT_EQ(converted("+0", R"({"type": "integer"})"), "0");
  EXPECT_EQ(converted("123456789012345678901234567890", R"({"type": "integer"})"),
            "123456789012345678901234567890");
  EXPECT_EQ(converted("4.5", R"({"type": "integer"})"), R"("4.5")");
  EXPECT_EQ(converted("", R"({"type": "integer"})"), R"("")");
}

TEST(ToolCallValue, Numbers) {
  EXPECT_EQ(converted("4", R"({"type": "number"})"), "4");
  EXPECT_EQ(converted("1.10", R"({"type": "number"})"), "1.10");
  EXPECT_EQ(converted("1e5", R"({"type": "number"})"), "1e5");
  EXPECT_EQ(converted("nan", R"({"type": "number"})"), R"("nan")");
}

TEST(ToolCallValue, BooleansAndNull) {
  EXPECT_EQ(converted("False", R"({"type": "boolean"})"), "false");
  EXPECT_EQ(converted("1", R"({"type": "boolean"})"), R"("1")");
  EXPECT_EQ(converted("None", R"({"type": ["string", "null"]})"), "null");
  EXPECT_EQ(converted("null", R"({"type": "string", "nullable": true})"), "null");
  EXPECT_EQ(converted("null", R"({"type": "string"})"), R"("null")");
}

TEST(ToolCallValue, ObjectsAndArrays) {
  EXPECT_EQ(converted("\n{\"a\": [1]}\n", R"({"type": "object"})"), R"({"a": [1]})");
  EXPECT_EQ(converted("[1]", R"({"type": "object"})"), R"("[1]")");
  EXPECT_EQ(converted("{'a': 1}", R"({"type": "object"})"), R"("{'a': 1}")");
}

TEST(ToolCallValue, Alternatives) {
  const std::string either =
      R"({"anyOf": [{"type": "integer"}, {"type": "array"}, {"type": "string"}]})";
  EXPECT_EQ(converted("5", either), "5");
  EXPECT_EQ(converted("[5]", either), "[5]");
  EXPECT_EQ(converted("five", either), R"("five")");
}

TEST(ToolCallValue, ListedTextsAreTexts) {
  EXPECT_EQ(converted("1", R"({"type": ["string", "integer"], "enum": ["1", 2]})"), R"("1")");
  EXPECT_EQ(converted("2", R"({"type": ["string", "integer"], "enum": ["1", 2]})"), "2");
  EXPECT_EQ(converted("null", R"({"type": ["string", "null"], "enum": ["null"]})"), R"("null")");
  EXPECT_EQ(converted("true", R"({"anyOf": [{"const": "true"}, {"type": "boolean"}]})"),
            R"("true")");
}

TEST(ToolCallValue, References) {
  EXPECT_EQ(converted("2", R"({"$ref": "#/$defs/Unit"})"), "2");
  EXPECT_EQ(converted("2", R"({"$ref": "#/$defs/Ring"})"), R"("2")");
  EXPECT_EQ(converted("2", R"({"$ref": "#/$defs/None"})"), R"("2")");
}

TEST(ToolCallValue, ParametersAreFoundWhereverTheSchemaLeads) {
  const auto converted_by = [](const std::string& parameters) {
    const std::string tools = R"([{"name": "f", "parameters": )" + parameters + "}]";
    return convert_parameter(
        "2", find_parameter_types(parse_json(tools, "tools").value().get_array(), "f", "p"));
  };
  const std::string list = R"({"properties": {"p": {"type": "integer"}}})";
  EXPECT_EQ(converted_by(list), "2");
  EXPECT_EQ(converted_by(R"({"$ref": "#/$defs/A", "$defs": {"A": )" + list + "}}"), "2");
  EXPECT_EQ(converted_by(R"({"allOf": [{}, )" + list + "]}"), "2");
  EXPECT_EQ(converted_by(R"({"anyOf": [{"$ref": "#"}, )" + list + "]}"), "2");
  EXPECT_EQ(converted_by(R"({"additionalProperties": {"type": "integer"}})"), "2");
  EXPECT_EQ(converted_by(R"({"additionalProperties": true})"), R"("2")");
}

// Each schema is looked at once: these have 50^16 ways to be reached.
TEST(ToolCallValue, RingsOfAlternativesTakeNoTime) {
  std::string ring = R"({"$ref": "#/$defs/Many"})";
  for (int i = 0; i < 49; ++i) ring += R"(, {"$ref": "#/$defs/Many"})";
  const std::string tools = R"([{"name": "f", "parameters": {"$ref": "#/$defs/Many", "properties":
      {"p": {"$ref": "#/$defs/Many"}}, "$defs": {"Many": {"anyOf": [)" +
                            ring + "]}}}}]";
  const JsonArray parsed = parse_json(tools, "tools").value().get_array();
  EXPECT_TRUE(find_parameter_types(parsed, "f", "p").only_text());
}

TEST(ToolCallValue, WithoutASchemaAllIsText) {
  EXPECT_EQ(converted("2", "{}"), R"("2")");
  EXPECT_EQ(converted(" a\n\"b\" ", "true"), "\" a\\n\\\"b\\\" \"");
  EXPECT_TRUE(find_parameter_types({}, "f", "p").only_text());
}

}  // namespace
}  // namespace slip
