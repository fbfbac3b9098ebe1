#include "checkpoint/config_reader.h"

#include "tests/checkpoint/test_files.h"

namespace slip {
namespace {

JsonObject object(std::string_view text) {
  auto result = parse_json_object(text, "config.json");
  EXPECT_TRUE(result.ok()) << result.failure().message;
  return result.ok() ? std::move(result).value() : JsonObject();
}

// The message of the first failure; "" if there was none.
template <class Read>
std::string failure_of(std::string_view text, Read read) {
  const JsonObject json = object(text);
  ConfigReader reader(json, "config.json");
  read(reader);
  const auto result = reader.finish(0);
  return result.ok() ? "" : result.failure().message;
}

std::string int_failure(std::string_view value) {
  return failure_of(cat("{\"k\":", value, "}"), [](auto& json) { json.require_int("k", 1, 100); });
}

TEST(ConfigReader, ReadsEveryType) {
  const JsonObject json =
      object(R"({"i":7,"whole":3.0,"d":1e-6,"n":5,"b":true,"s":"silu","ints":[1,2],"one":4,)"
             R"("strings":["a","b"],"null":null,"sub":{"x":1}})");
  ConfigReader reader(json, "config.json");
  EXPECT_EQ(reader.require_int("i"), 7);
  EXPECT_EQ(reader.require_int("whole"), 3);
  EXPECT_EQ(reader.int_or("i", 9), 7);
  EXPECT_EQ(reader.int_or("absent", 9), 9);
  EXPECT_EQ(reader.int_or("null", 9), 9);
  EXPECT_EQ(reader.require_double("d"), 1e-6);
  EXPECT_EQ(reader.require_double("n"), 5.0);
  EXPECT_EQ(reader.double_or("absent", 0.25), 0.25);
  EXPECT_TRUE(reader.bool_or("b", false));
  EXPECT_TRUE(reader.bool_or("absent", true));
  EXPECT_EQ(reader.require_string("s"), "silu");
  EXPECT_EQ(reader.string_or("absent", "gelu"), "gelu");
  EXPECT_EQ(reader.require_int_list("ints"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(reader.int_or_int_list("one"), (std::vector<int64_t>{4}));
  EXPECT_EQ(reader.int_or_int_list("ints"), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(reader.int_or_int_list("absent").empty());
  EXPECT_EQ(reader.require_string_list("strings"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(reader.child("sub").require_int("x"), 1);
  EXPECT_EQ(reader.child_or_null("absent"), nullptr);
  EXPECT_EQ(reader.child_or_null("null"), nullptr);
  EXPECT_TRUE(reader.has("i"));
  EXPECT_FALSE(reader.has("null"));
  EXPECT_TRUE(reader.finish(0).ok());
}

TEST(ConfigReader, IntegersAreStrict) {
  EXPECT_EQ(int_failure("100"), "");
  EXPECT_EQ(int_failure("101"), "config.json: k: expected an integer from 1 to 100, found 101");
  EXPECT_EQ(int_failure("0"), "config.json: k: expected an integer from 1 to 100, found 0");
  EXPECT_EQ(int_failure("true"), "config.json: k: expected an integer from 1 to 100, found true");
  EXPECT_EQ(int_failure("\"5\""), "config.json: k: expected an integer from 1 to 100, found \"5\"");
  EXPECT_EQ(int_failure("5.5"), "config.json: k: expected an integer from 1 to 100, found 5.5");
  EXPECT_EQ(int_failure("null"), "config.json: k: expected an integer from 1 to 100, found null");
  EXPECT_EQ(int_failure("[5]"), "config.json: k: expected an integer from 1 to 100, found a list");
  EXPECT_THAT(int_failure("1e300"), ::testing::HasSubstr("found 1e+300"));
  EXPECT_THAT(int_failure("18446744073709551615"), ::testing::HasSubstr("found 1844674407370955"));
  EXPECT_EQ(failure_of("{}", [](auto& json) { json.require_int("k"); }),
            "config.json: k: expected an integer from 1 to 2147483647, found no such key");
  EXPECT_NE(
      failure_of("{\"k\":1e300}", [](auto& json) { json.require_int("k", INT64_MIN, INT64_MAX); }),
      "");
  EXPECT_NE(failure_of("{\"k\":2147483648}", [](auto& json) { json.int_or("k", 1); }), "");
}

TEST(ConfigReader, OtherTypesAreStrict) {
  const auto failure = [](std::string_view value, auto read) {
    return failure_of(cat("{\"k\":", value, "}"), read);
  };
  EXPECT_EQ(failure("true", [](auto& json) { json.require_double("k"); }),
            "config.json: k: expected a finite number, found true");
  EXPECT_NE(failure("1e999", [](auto& json) { json.double_or("k", 1); }), "");
  EXPECT_EQ(failure("1", [](auto& json) { json.bool_or("k", false); }),
            "config.json: k: expected true or false, found 1");
  EXPECT_EQ(failure("1", [](auto& json) { json.string_or("k", "x"); }),
            "config.json: k: expected a string, found 1");
  EXPECT_EQ(failure("[1,true]", [](auto& json) { json.require_int_list("k"); }),
            "config.json: k[1]: expected an integer from 0 to 2147483647, found true");
  EXPECT_EQ(failure("[\"a\",1]", [](auto& json) { json.require_string_list("k"); }),
            "config.json: k[1]: expected a string, found 1");
  EXPECT_EQ(failure("{}", [](auto& json) { json.require_int_list("k"); }),
            "config.json: k: expected a list of integers, found an object");
  EXPECT_EQ(failure("[]", [](auto& json) { json.child("k").require_int("x"); }),
            "config.json: k: expected an object, found a list");
  EXPECT_EQ(failure("[]", [](auto& json) { json.child_or_null("k"); }),
            "config.json: k: expected an object, found a list");
  EXPECT_EQ(failure("1", [](auto& json) { json.child("absent"); }),
            "config.json: absent: expected an object, found no such key");
}

TEST(ConfigReader, FailuresOfChildrenNameTheirPathAndReachTheRoot) {
  EXPECT_EQ(failure_of(R"({"text_config":{"rope":{"theta":"x"}}})",
                       [](auto& json) {
                         json.child("text_config").child("rope").require_double("theta");
                       }),
            "config.json: text_config.rope.theta: expected a finite number, found \"x\"");
}

TEST(ConfigReader, KeepsTheFirstFailure) {
  EXPECT_EQ(failure_of("{}",
                       [](auto& json) {
                         json.fail("first", "is odd");
                         json.require_int("second");
                         json.reject_unread_keys({});
                       }),
            "config.json: first: is odd");
}

TEST(ConfigReader, ExpectRefusesWhatIsNotImplemented) {
  constexpr std::string_view kText = R"({"act":"silu","bias":false,"eps":1,"none":null})";
  const auto failure = [&](const char* key, const Json& value) {
    return failure_of(kText, [&](auto& json) { json.expect(key, value); });
  };
  EXPECT_EQ(failure("act", "silu"), "");
  EXPECT_EQ(failure("bias", false), "");
  EXPECT_EQ(failure("eps", 1.0), "");
  EXPECT_EQ(failure("none", "x"), "");
  EXPECT_EQ(failure("absent", "x"), "");
  EXPECT_EQ(failure("act", "gelu"),
            "config.json: act: expected \"gelu\", the only value implemented, found \"silu\"");
  EXPECT_EQ(failure("bias", true),
            "config.json: bias: expected true, the only value implemented, found false");
  EXPECT_NE(failure("bias", 0), "");
}

TEST(ConfigReader, ReportsUnreadKeys) {
  const JsonObject json = object(
      R"({"read":1,"new":2,"none":null,"dtype":"x","_name":"y","text_config":{"a":1,"b":2,"dtype":3},)"
      R"("vision_config":{"c":1}})");
  ConfigReader reader(json, "config.json");
  reader.require_int("read");
  reader.child("text_config").require_int("a");
  EXPECT_EQ(reader.unread_keys({"dtype", "vision_config"}),
            (std::vector<std::string>{"new", "text_config.b"}));
  EXPECT_EQ(reader.unread_keys({"new", "vision_config", "text_config.dtype", "text_config.b"}),
            (std::vector<std::string>{"dtype"}));
  reader.reject_unread_keys({"dtype", "vision_config"});
  expect_error(reader.finish(0), {"config.json", "found new, text_config.b"});
}

TEST(ConfigReader, AFullyReadObjectPasses) {
  EXPECT_EQ(failure_of(R"({"a":1,"sub":{"b":2}})",
                       [](auto& json) {
                         json.require_int("a");
                         json.child("sub").require_int("b");
                         json.reject_unread_keys({});
                       }),
            "");
}

TEST(ConfigReader, WorksOnObjectsUsedAsMaps) {
  const JsonObject json = object(R"({"layers.1.mlp":{"bits":16},"lm_head":{"bits":8}})");
  ConfigReader reader(json, "config.json");
  EXPECT_EQ(reader.keys(), (std::vector<std::string>{"layers.1.mlp", "lm_head"}));
  EXPECT_EQ(reader.child("layers.1.mlp").require_int("bits"), 16);
}

TEST(ParseJsonObject, RefusesWhatIsNotAnObject) {
  expect_error(parse_json_object("[]", "c.json"), {"c.json: expected a JSON object, found a list"});
  expect_error(parse_json_object("{", "c.json"), {"c.json: not valid JSON"});
  expect_error(parse_json_object("", "c.json"), {"c.json: not valid JSON"});
  expect_error(parse_json_object("{\"a\":\"\xff\"}", "c.json"), {"c.json: not valid JSON at byte"});
  expect_error(parse_json_object(R"({"a":{"b":1,"c":2,"b":3}})", "c.json"),
               {"c.json: the key \"b\" appears twice"});
  EXPECT_TRUE(parse_json_object(R"({"a":{"b":1},"b":[{"b":2},{"b":2}]})", "c.json").ok());
}

TEST(ReadConfigJson, NamesTheFile) {
  const TempFolder folder;
  const std::string path = (folder.path() / "config.json").string();
  expect_error(read_config_json(folder.path()), {path, "No such file", "Hugging Face"});
  folder.write("config.json", "{\"hidden_size\": ");
  expect_error(read_config_json(folder.path()), {path, "not valid JSON"});
  folder.write("config.json", "{\"hidden_size\": 64}");
  const auto config = read_config_json(folder.path());
  ASSERT_TRUE(config.ok()) << config.failure().message;
  EXPECT_EQ(config.value().at("hidden_size").as_int64(), 64);
}

}  // namespace
}  // namespace slip
