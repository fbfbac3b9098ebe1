#include "base/json.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

TEST(ParseJson, NamesTheSourceOfBadInput) {
  const Result<Json> result = parse_json("{\"a\": ", "config.json");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.failure().message.find("config.json"), std::string::npos);
}

TEST(ParseJson, RefusesDeepNesting) {
  EXPECT_FALSE(parse_json(std::string(100, '[') + std::string(100, ']'), "deep").ok());
  EXPECT_TRUE(parse_json(std::string(60, '[') + std::string(60, ']'), "shallow").ok());
}

}  // namespace
}  // namespace slip
