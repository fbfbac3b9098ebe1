#include "checkpoint/index.h"

#include "tests/checkpoint/test_files.h"

namespace slip {
namespace {

Result<SafetensorsIndex> parse(std::string_view text) {
  return parse_index(text, "dir/index.json");
}

Result<SafetensorsIndex> parse_file_name(std::string_view name) {
  return parse(cat("{\"weight_map\":{\"w\":\"", name, "\"}}"));
}

TEST(Index, SortsTensorsAndCollectsFiles) {
  const auto index =
      parse(R"({"metadata":{"total_size":12,"weight_map":{"no":1}},)"
            R"("weight_map":{"b":"m-2.safetensors","a":"m-1.safetensors","c":"m-2.safetensors"},)"
            R"("x":[{}]})");
  ASSERT_TRUE(index.ok()) << index.failure().message;
  EXPECT_EQ(index.value().files, (std::vector<std::string>{"m-2.safetensors", "m-1.safetensors"}));
  const auto& entries = index.value().entries;
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].tensor, "a");
  EXPECT_EQ(entries[0].file, 1u);
  EXPECT_EQ(entries[1].tensor, "b");
  EXPECT_EQ(entries[1].file, 0u);
  EXPECT_EQ(entries[2].file, 0u);
}

TEST(Index, RefusesOtherShapes) {
  expect_error(parse("[]"), {"dir/index.json: the file is a list", "weight_map"});
  expect_error(parse("\"x\""), {"dir/index.json: the file is \"x\"", "weight_map"});
  expect_error(parse("{}"), {"dir/index.json: weight_map is missing"});
  expect_error(parse(R"({"weight_map":[]})"), {"dir/index.json: weight_map is a list"});
  expect_error(parse(R"({"weight_map":null})"), {"dir/index.json: weight_map is null"});
  expect_error(parse(R"({"weight_map":{"w":3}})"),
               {"dir/index.json: weight_map: tensor \"w\": expected the name", "found 3"});
  expect_error(parse(R"({"weight_map":{"w":["a"]}})"), {"tensor \"w\"", "found a list"});
  expect_error(parse(R"({"weight_map":{"w":{}}})"), {"tensor \"w\"", "found an object"});
  expect_error(parse(R"({"weight_map":)"), {"dir/index.json: not valid JSON at byte 14"});
  expect_error(parse(""), {"dir/index.json: not valid JSON"});
  expect_error(parse("{\"weight_map\":{\"\xc3\":\"a.safetensors\"}}"), {"not valid JSON"});
}

TEST(Index, RefusesNamesThatLeaveTheFolder) {
  for (const char* name :
       {"../m.safetensors", "/etc/m.safetensors", "a/m.safetensors", "..\\\\m.safetensors", "..",
        "", "m.bin", ".safetensors", "a\\u0000.safetensors"})
    expect_error(parse_file_name(name),
                 {"dir/index.json", "tensor \"w\"", "in this folder, found"});
  EXPECT_TRUE(parse_file_name("m..x.safetensors").ok());
}

TEST(Index, RefusesRepeatedKeys) {
  expect_error(parse(R"({"weight_map":{"w":"a.safetensors","w":"b.safetensors"}})"),
               {"dir/index.json: weight_map: tensor \"w\" appears twice"});
  expect_error(parse(R"({"weight_map":{},"weight_map":{}})"), {"weight_map appears twice"});
}

}  // namespace
}  // namespace slip
