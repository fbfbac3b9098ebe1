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

TEST(ToolCallValue, References) {
  EXPECT_EQ(converted("2", R"({"$ref": "#/$defs/Unit"})"), "2");
  EXPECT_EQ(converted("2", R"({"$ref": "#/$defs/Ring"})"), R"("2")");
  EXPECT_EQ(converted("2", R"({"$ref": "#/$defs/None"})"), R"("2")");
}

TEST(ToolCallValue, WithoutASchemaAllIsText) {
  EXPECT_EQ(converted("2", "{}"), R"("2")");
  EXPECT_EQ(converted(" a\n\"b\" ", "true"), "\" a\\n\\\"b\\\" \"");
  EXPECT_TRUE(find_parameter_types({}, "f", "p").only_text());
}

}  // namespace
}  // namespace slip
