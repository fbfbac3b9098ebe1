#include "base/json.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

TEST(ParseJson, NamesTheSourceOfBadInput) {
  const Result<Json> result = parse_json("{\"a\": ", "config.json");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.failure().message.find("config.json"), std::string::npos);
}

TEST(Json, TextOfWhatIsNoStringIsEmpty) {
  const Json json = parse_json(R"({"a": "text", "b": 1, "c": {"d": "inner"}})", "test").value();
  EXPECT_EQ(text_or_empty(member_of(&json, "a")), "text");
  EXPECT_EQ(text_or_empty(member_of(&json, "b")), "");
  EXPECT_EQ(text_or_empty(member_of(&json, "x")), "");
  EXPECT_EQ(text_or_empty(member_of(member_of(&json, "c"), "d")), "inner");
}

TEST(ParseJson, RefusesDeepNesting) {
  EXPECT_FALSE(parse_json(std::string(100, '[') + std::string(100, ']'), "deep").ok());
  EXPECT_TRUE(parse_json(std::string(60, '[') + std::string(60, ']'), "shallow").ok());
}

}  // namespace
}  // namespace slip
