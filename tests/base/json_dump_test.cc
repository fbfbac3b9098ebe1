#include "base/json_dump.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace slip {
namespace {

std::string reprinted(const std::string& text) {
  return dump_json(parse_json(text, "test").value());
}

TEST(DumpJson, SeparatesAsPython) {
  EXPECT_EQ(reprinted(R"({"b":[1,2,{}],"a":null,"c":[],"d":true})"),
            R"({"b": [1, 2, {}], "a": null, "c": [], "d": true})");
}

TEST(DumpJson, KeepsNonAsciiAndEscapesTheRest) {
  EXPECT_EQ(reprinted(R"("日本 <>&' \" \\ \n\t\r\b\f \u0001 \u007f")"),
            "\"日本 <>&' \\\" \\\\ \\n\\t\\r\\b\\f \\u0001 \x7f\"");
}

TEST(DumpJson, QuotesAText) { EXPECT_EQ(json_quoted("a\"b\n"), R"("a\"b\n")"); }

TEST(DumpJson, AsciiOnlyUsesSurrogatePairs) {
  EXPECT_EQ(dump_json(Json("é😀\x7f"), JsonStyle{.ascii_only = true}),
            R"("\u00e9\ud83d\ude00\u007f")");
}

TEST(DumpJson, PrintsWideIntegers) {
  EXPECT_EQ(reprinted("[-9223372036854775808, 18446744073709551615]"),
            "[-9223372036854775808, 18446744073709551615]");
}

TEST(DumpJson, Indents) {
  const Json value = parse_json(R"({"a":[1,{"b":2}],"c":{},"d":[]})", "test").value();
  EXPECT_EQ(
      dump_json(value, 2),
      "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}");
}

TEST(DumpJson, SortsKeysOnRequest) {
  const Json value = parse_json(R"({"b":1,"a":2})", "test").value();
  EXPECT_EQ(dump_json(value, JsonStyle{.sort_keys = true}), R"({"a": 2, "b": 1})");
}

TEST(DumpJson, NeverPrintsWhatReadersRefuse) {
  EXPECT_EQ(dump_json(Json(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(dump_json(Json(std::nan(""))), "null");
}

TEST(FormatDouble, AgreesWithPythonRepr) {
  const std::pair<double, const char*> cases[] = {
      {3.0, "3.0"},
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {12.5, "12.5"},
      {0.1, "0.1"},
      {1e-7, "1e-07"},
      {0.0001, "0.0001"},
      {0.00012, "0.00012"},
      {1.5e-5, "1.5e-05"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {1.25e22, "1.25e+22"},
      {1e100, "1e+100"},
      {-2.5, "-2.5"},
      {123456.789, "123456.789"},
      {1.0 / 3, "0.3333333333333333"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {9007199254740993.0, "9007199254740992.0"},
      {std::numeric_limits<double>::infinity(), "inf"},
      {-std::numeric_limits<double>::infinity(), "-inf"},
  };
  for (const auto& [value, expected] : cases) EXPECT_EQ(format_double(value), expected);
}

}  // namespace
}  // namespace slip
