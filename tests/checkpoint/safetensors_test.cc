#include "checkpoint/safetensors.h"

#include <fstream>
#include <iterator>

#include "tests/checkpoint/test_files.h"

namespace slip {
namespace {

Result<SafetensorsHeader> parse(std::string_view file) {
  return parse_safetensors_header(as_bytes(file), file.size(), "dir/m.safetensors");
}

// A file with one tensor "w", described by the given fields.
Result<SafetensorsHeader> parse_tensor(std::string_view fields, size_t data_size = 24) {
  return parse(safetensors_file(cat("{\"w\":{", fields, "}}"), data_size));
}

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(StoredType, NamesRoundTrip) {
  for (const char* name : {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I64",
                           "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}) {
    const auto type = parse_stored_type(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(stored_type_name(*type), name);
  }
  EXPECT_FALSE(parse_stored_type("f32"));
  EXPECT_FALSE(parse_stored_type(""));
  EXPECT_EQ(bytes_per_value(StoredType::i64), 8);
  EXPECT_EQ(bytes_per_value(StoredType::f32), 4);
  EXPECT_EQ(bytes_per_value(StoredType::bf16), 2);
  EXPECT_EQ(bytes_per_value(StoredType::f8_e4m3), 1);
}

TEST(SafetensorsHeader, ReadsTensorsInOrderOfTheirBytes) {
  const std::string header = R"({"__metadata__":{"format":"pt","note":"x"},)"
                             R"("b":{"data_offsets":[8,20],"shape":[2,3],"dtype":"BF16"},)"
                             R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[20,20]},)"
                             R"("one":{"dtype":"I32","shape":[],"data_offsets":[20,24]}}   )";
  const auto result = parse(safetensors_file(header, 24));
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_EQ(result.value().format, "pt");
  const auto& tensors = result.value().tensors;
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].type, StoredType::f32);
  EXPECT_EQ(tensors[0].offset, 8 + header.size());
  EXPECT_EQ(tensors[1].name, "b");
  EXPECT_EQ(tensors[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensors[1].offset, 8 + header.size() + 8);
  EXPECT_EQ(tensors[1].bytes, 12u);
  EXPECT_EQ(tensors[2].name, "none");
  EXPECT_EQ(tensors[3].bytes, 4u);
}

TEST(SafetensorsHeader, ReadsEscapedAndNonAsciiNames) {
  const auto result = parse(safetensors_file(
      "{\"a\\u0041\\n\xc3\xa9\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1));
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_EQ(result.value().tensors[0].name, "aA\n\xc3\xa9");
}

TEST(SafetensorsHeader, AcceptsAFileWithoutTensors) {
  const auto result = parse(safetensors_file("{}", 0));
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_TRUE(result.value().tensors.empty());
}

TEST(SafetensorsHeader, RefusesTruncatedFiles) {
  expect_error(parse(""), {"dir/m.safetensors", "truncated", "at least 8 bytes", "found 0"});
  expect_error(parse(std::string_view("\x02\0\0\0\0\0\0", 7)), {"at least 8 bytes", "found 7"});
  const std::string file = weights_file({"x", "y"});
  expect_error(parse(file.substr(0, 20)), {"dir/m.safetensors", "truncated",
                                           cat("ends at byte ", file.size() - 8), "has only 20"});
  expect_error(parse(file.substr(0, file.size() - 1)),
               {"dir/m.safetensors", "truncated", "tensor \"y\"", "[4, 8]",
                cat("at least ", file.size(), " bytes"), cat("found ", file.size() - 1)});
}

TEST(SafetensorsHeader, EveryPrefixOfAFileIsRefused) {
  const std::string file = weights_file({"x", "y"});
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parse(file.substr(0, size)).ok()) << size;
  EXPECT_TRUE(parse(file).ok());
}

TEST(SafetensorsHeader, RefusesTrailingBytes) {
  const std::string file = weights_file({"x"});
  expect_error(parse(file + "zz"), {"dir/m.safetensors", "trailing bytes", cat(file.size()),
                                    cat("found ", file.size() + 2)});
}

TEST(SafetensorsHeader, RefusesHugeHeaderLengths) {
  std::string file = weights_file({"x"});
  file[7] = char(0x80);
  expect_error(parse(file),
               {"dir/m.safetensors", "header length", "at most 100000000", "found 92"});
  file.replace(0, 8, std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff", 8));
  expect_error(parse(file), {"at most 100000000", "found 18446744073709551615"});
  file.replace(0, 8, std::string_view("\0\x10\0\0\0\0\0\0", 8));
  expect_error(parse(file), {"truncated", "ends at byte 4104", cat("has only ", file.size())});
}

TEST(SafetensorsHeader, RefusesWhatIsNotJson) {
  expect_error(parse(safetensors_file("", 0)), {"dir/m.safetensors: header", "not valid JSON"});
  expect_error(parse(safetensors_file("{\"a\":", 0)), {"header: not valid JSON at byte 5"});
  expect_error(parse(safetensors_file("{} {}", 0)), {"header"});
  expect_error(parse(safetensors_file("{\"\xff\xfe\":1}", 0)), {"header: not valid JSON at byte"});
  expect_error(parse(safetensors_file(std::string(1000, '['), 0)), {"header"});
}

TEST(SafetensorsHeader, RefusesOtherJson) {
  expect_error(parse(safetensors_file("[1]", 0)), {"the header is a list, expected an object"});
  expect_error(parse(safetensors_file("3", 0)), {"the header is 3, expected an object"});
  expect_error(parse(safetensors_file("{\"w\":7}", 0)), {"\"w\": expected an object, found 7"});
  expect_error(parse(safetensors_file("{\"w\":[]}", 0)), {"\"w\": expected an object, found a"});
  expect_error(parse(safetensors_file("{\"__metadata__\":[]}", 0)),
               {"__metadata__: expected an object, found a list"});
  expect_error(parse(safetensors_file("{\"__metadata__\":null}", 0)),
               {"__metadata__: expected an object, found null"});
}

TEST(SafetensorsHeader, MetadataOfAnyShapeIsSkipped) {
  const auto result = parse(
      safetensors_file(R"({"__metadata__":{"format":["pt"],"a":{"format":"mlx","b":[{}]},"c":1},)"
                       R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                       1));
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_EQ(result.value().format, "");
  EXPECT_EQ(result.value().tensors.size(), 1u);
}

TEST(SafetensorsHeader, RefusesWrongTypes) {
  constexpr std::string_view kRest = R"("shape":[2,3],"data_offsets":[0,24])";
  expect_error(parse_tensor(cat(R"("dtype":"Q4",)", kRest)),
               {"dir/m.safetensors", "tensor \"w\": dtype", "one of F64, F32", "found \"Q4\""});
  expect_error(parse_tensor(cat(R"("dtype":7,)", kRest)), {"\"w\": dtype", "found 7"});
  expect_error(parse_tensor(cat(R"("dtype":["F32"],)", kRest)), {"\"w\": dtype", "found a list"});
  expect_error(parse_tensor(cat(R"("dtype":{},)", kRest)), {"\"w\": dtype", "found an object"});
  expect_error(parse_tensor(R"("dtype":"F32","shape":6,"data_offsets":[0,24])"),
               {"\"w\": shape: expected a list of non-negative integers, found 6"});
  expect_error(parse_tensor(R"("dtype":"F32","shape":[6],"data_offsets":"0,24")"),
               {"\"w\": data_offsets: expected a list of two", "found \"0,24\""});
  expect_error(parse_tensor(R"("dtype":"F32","shape":[[6]],"data_offsets":[0,24])"),
               {"\"w\": shape", "found a list in the list"});
}

TEST(SafetensorsHeader, RefusesMissingAndUnknownFields) {
  expect_error(parse_tensor(R"("shape":[6],"data_offsets":[0,24])"), {"\"w\": dtype is missing"});
  expect_error(parse_tensor(R"("dtype":"F32","data_offsets":[0,24])"), {"shape is missing"});
  expect_error(parse_tensor(R"("dtype":"F32","shape":[6])"), {"data_offsets is missing"});
  expect_error(parse_tensor(R"("dtype":"F32","shape":[6],"data_offsets":[0,24],"strides":[1])"),
               {"tensor \"w\"", "expected dtype, shape and data_offsets", "\"strides\""});
}

TEST(SafetensorsHeader, RefusesBadShapes) {
  expect_error(parse_tensor(R"("dtype":"F32","shape":[-6],"data_offsets":[0,24])"),
               {"\"w\": shape", "non-negative", "found -6"});
  expect_error(parse_tensor(R"("dtype":"F32","shape":[6.0],"data_offsets":[0,24])"),
               {"\"w\": shape", "found 6"});
  expect_error(parse_tensor(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])"),
               {"\"w\": shape", "found 18446744073709551615"});
  // 2^31 * 2^31 * 4 = 2^64, which is 0 when it wraps.
  expect_error(
      parse_tensor(R"("dtype":"F32","shape":[2147483648,2147483648],"data_offsets":[0,0])", 0),
      {"\"w\": F32 [2147483648, 2147483648] needs more than 2^63 bytes", "give 0"});
  std::string shape = "1";
  for (int i = 0; i < 16; ++i) shape += ",1";
  expect_error(parse_tensor(cat(R"("dtype":"U8","data_offsets":[0,1],"shape":[)", shape, "]"), 1),
               {"\"w\": shape: expected at most 16 numbers"});
}

TEST(SafetensorsHeader, RefusesSizesThatDisagree) {
  expect_error(
      parse_tensor(R"("dtype":"F32","shape":[2,3],"data_offsets":[0,20])", 20),
      {"dir/m.safetensors", "tensor \"w\"", "F32 [2, 3] needs 24 bytes", "[0, 20] give 20"});
  expect_error(parse_tensor(R"("dtype":"BF16","shape":[2,3],"data_offsets":[0,24])"),
               {"BF16 [2, 3] needs 12 bytes", "give 24"});
}

TEST(SafetensorsHeader, RefusesBadOffsets) {
  expect_error(parse_tensor(R"("dtype":"U8","shape":[24],"data_offsets":[24,0])"),
               {"\"w\": data_offsets: expected begin and end, found [24, 0]"});
  expect_error(parse_tensor(R"("dtype":"U8","shape":[24],"data_offsets":[24])"),
               {"\"w\": data_offsets: expected begin and end, found [24]"});
  expect_error(parse_tensor(R"("dtype":"U8","shape":[24],"data_offsets":[0,24,48])"),
               {"\"w\": data_offsets: expected at most 2 numbers"});
  expect_error(parse_tensor(R"("dtype":"U8","shape":[24],"data_offsets":[-24,0])"),
               {"\"w\": data_offsets", "found -24"});
  expect_error(parse_tensor(R"("dtype":"U8","shape":[7],)"
                            R"("data_offsets":[9223372036854775800,9223372036854775807])"),
               {"truncated: tensor \"w\"", "[9223372036854775800, 9223372036854775807]", "found "});
}

TEST(SafetensorsHeader, RefusesOverlapsAndHoles) {
  const auto two = [](int begin, int end, size_t size) {
    return parse(safetensors_file(
        cat(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8",)",
            R"("shape":[8],"data_offsets":[)", begin, ",", end, "]}}"),
        size));
  };
  EXPECT_TRUE(two(8, 16, 16).ok());
  expect_error(two(4, 12, 12), {"dir/m.safetensors", "tensor \"b\" with data_offsets [4, 12]",
                                "overlaps tensor \"a\" with data_offsets [0, 8]"});
  expect_error(two(0, 8, 8), {"overlaps"});
  expect_error(two(12, 20, 20), {"tensor \"b\"", "[12, 20]", "expected to begin at 8"});
}

TEST(SafetensorsHeader, RefusesRepeatedKeys) {
  constexpr std::string_view kTensor = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expect_error(parse(safetensors_file(cat("{\"w\":", kTensor, ",\"w\":", kTensor, "}"), 1)),
               {"dir/m.safetensors", "tensor \"w\" appears twice"});
  expect_error(parse_tensor(R"("dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1])", 1),
               {"tensor \"w\": dtype appears twice"});
  expect_error(parse(safetensors_file(R"({"__metadata__":{},"__metadata__":{}})", 0)),
               {"__metadata__ appears twice"});
}

TEST(WriteSafetensors, WhatIsWrittenReadsBack) {
  const TempFolder folder;
  const std::string narrow = "abcde";
  const std::vector<float> wide = {1.5f, -2.0f};
  const TensorToWrite tensors[] = {
      {"ids \"x\"", StoredType::u8, {5}, as_bytes(narrow)},
      {"logits", StoredType::f32, {1, 2}, std::as_bytes(std::span(wide))},
      {"none", StoredType::f32, {0}, {}},
  };
  const auto path = folder.path() / "out.safetensors";
  ASSERT_TRUE(write_safetensors(path, tensors).ok());
  const std::string file = read_all(path);
  const auto header = parse_safetensors_header(as_bytes(file), file.size(), path.string());
  ASSERT_TRUE(header.ok()) << header.failure().message;
  EXPECT_EQ(header.value().format, "");
  const auto& read = header.value().tensors;
  ASSERT_EQ(read.size(), 3u);
  const auto& logits = read[0].name == "logits" ? read[0] : read[1];
  EXPECT_EQ(logits.name, "logits");
  EXPECT_EQ(logits.shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(logits.offset % 8, 0u);
  EXPECT_EQ(file.substr(logits.offset, 8),
            std::string(reinterpret_cast<const char*>(wide.data()), 8));
  EXPECT_EQ(read[2].name, "ids \"x\"");
  EXPECT_EQ(file.substr(read[2].offset, 5), narrow);
  // Nothing but the file itself is left behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);

  ASSERT_TRUE(write_safetensors(path, tensors, "pt").ok());
  const std::string weights = read_all(path);
  EXPECT_EQ(parse_safetensors_header(as_bytes(weights), weights.size(), "p").value().format, "pt");
}

TEST(WriteSafetensors, RefusesWhatItCouldNotReadBack) {
  const TempFolder folder;
  const auto path = folder.path() / "out.safetensors";
  const std::string data = "abcd";
  const TensorToWrite tensor = {"w", StoredType::u8, {4}, as_bytes(data)};
  const TensorToWrite twice[] = {tensor, tensor};
  expect_error(write_safetensors(path, twice), {path.string(), "tensor w is given twice"});
  const TensorToWrite wrong[] = {{"w", StoredType::f32, {4}, as_bytes(data)}};
  expect_error(write_safetensors(path, wrong), {"F32 [4] needs 16 bytes, found 4"});
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto nowhere = folder.path() / "no" / "out.safetensors";
  expect_error(write_safetensors(nowhere, {&tensor, 1}), {nowhere.string(), "there is no folder"});
}

}  // namespace
}  // namespace slip
