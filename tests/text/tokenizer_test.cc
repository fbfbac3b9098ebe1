#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"

namespace slip {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Letters a to d as tokens 0 to 3 and a space as 4; `fields` are further members of the file.
std::string letters_json(const std::string& fields) {
  return R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "Ġ": 4},
             "merges": []},
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
             "decoder": {"type": "ByteLevel"})" +
         (fields.empty() ? "}" : ", " + fields + "}");
}

Tokenizer letters(const std::string& added_tokens) {
  return Tokenizer::from_json(letters_json("\"added_tokens\": " + added_tokens), "test").value();
}

std::string message_of(const std::string& json) {
  const Result<Tokenizer> result = Tokenizer::from_json(json, "broken.json");
  return result.ok() ? "it was accepted" : result.failure().message;
}

TEST(Tokenizer, LeftmostThenLongestAddedTokenWins) {
  const Tokenizer tokenizer = letters(
      R"([{"id": 5, "content": "ab"}, {"id": 6, "content": "abc"}, {"id": 7, "content": "bcd"}])");
  EXPECT_THAT(tokenizer.encode("abcd"), ElementsAre(6, 3));
  EXPECT_THAT(tokenizer.encode("abd bcd"), ElementsAre(5, 3, 4, 7));
}

TEST(Tokenizer, AddedTokensCanBeReadAsText) {
  const Tokenizer tokenizer =
      letters(R"([{"id": 5, "content": "ab", "special": true}, {"id": 6, "content": "cd"}])");
  EXPECT_THAT(tokenizer.encode("abcd"), ElementsAre(5, 6));
  EXPECT_THAT(tokenizer.encode("abcd", AddedTokens::kAsText), ElementsAre(0, 1, 2, 3));
}

TEST(Tokenizer, AddedTokenFlags) {
  const Tokenizer tokenizer = letters(R"([{"id": 5, "content": "<l>", "lstrip": true},
                  {"id": 6, "content": "<r>", "rstrip": true},
                  {"id": 7, "content": "bb", "single_word": true}])");
  EXPECT_THAT(tokenizer.encode("a  <l> a"), ElementsAre(0, 5, 4, 0)) << "lstrip";
  EXPECT_THAT(tokenizer.encode("a <r>  a"), ElementsAre(0, 4, 6, 0)) << "rstrip";
  EXPECT_THAT(tokenizer.encode("<r>  <l>a"), ElementsAre(6, 5, 0)) << "both want the same spaces";
  EXPECT_THAT(tokenizer.encode("bb abb"), ElementsAre(7, 4, 0, 1, 1)) << "single_word";
}

TEST(Tokenizer, RawTokensAreFoundBeforeNormalisation) {
  const auto with_flag = [](const char* normalized) {
    return Tokenizer::from_json(
               letters_json(cat(R"("normalizer": {"type": "NFC"}, "added_tokens": [{"id": 5,
                                "content": "\u00e9", "normalized": )",
                                normalized, "}]")),
               "test")
        .value();
  };
  EXPECT_THAT(with_flag("true").encode("ae\u0301"), ElementsAre(0, 5));
  EXPECT_THAT(with_flag("false").encode("ae\u0301"), ElementsAre(0)) << "bytes without a token";
  EXPECT_THAT(with_flag("false").encode("a\u00E9"), ElementsAre(0, 5));
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer tokenizer = letters(R"([{"id": 9, "content": "<x y>", "special": true}])");
  EXPECT_EQ(tokenizer.vocab_size(), 10);
  EXPECT_EQ(tokenizer.token_bytes(4), " ");
  EXPECT_EQ(tokenizer.token_bytes(9), "<x y>");
  EXPECT_EQ(tokenizer.find("Ġ"), 4);
  EXPECT_EQ(tokenizer.find("<x y>"), 9);
  EXPECT_EQ(tokenizer.find(" "), std::nullopt) << "the file does not spell it so";
  EXPECT_TRUE(tokenizer.is_special(9));
  for (const int32_t id : {-1, 5, 8, 10, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer.token_bytes(id), "") << id;
    EXPECT_FALSE(tokenizer.is_special(id)) << id;
  }
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{-5, 0, 6, 9, 1 << 30}), "a<x y>");
}

TEST(Tokenizer, BrokenFilesAreRefusedWithTheReason) {
  EXPECT_THAT(message_of("{"), HasSubstr("broken.json"));
  EXPECT_THAT(message_of("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(message_of("{}"), HasSubstr("\"model\" is missing"));
  EXPECT_EQ(message_of(letters_json("")), "it was accepted") << "so the rest is what is refused";
  const auto with = [](const std::string& fields) { return message_of(letters_json(fields)); };
  EXPECT_THAT(with(R"("normalizer": {"type": "NFKC"})"), HasSubstr("NFKC"));
  EXPECT_THAT(with(R"("normalizer": {"type": "Replace", "pattern": {"Regex": " +"},
                       "content": ""})"),
              HasSubstr(" +"));
  EXPECT_THAT(with(R"("normalizer": {"type": "Sequence"})"), HasSubstr("normalizers"));
  EXPECT_THAT(with(R"("decoder": {"type": "WordPiece"})"), HasSubstr("WordPiece"));
  EXPECT_THAT(with(R"("decoder": null)"), HasSubstr("decoder"));
  EXPECT_THAT(with(R"("decoder": {"type": "Fuse"})"), HasSubstr("ByteLevel"));
  EXPECT_THAT(with(R"("added_tokens": {})"), HasSubstr("added_tokens"));
  EXPECT_THAT(with(R"("added_tokens": [{"content": "x"}])"), HasSubstr("no \"id\""));
  EXPECT_THAT(with(R"("added_tokens": [{"id": 5}])"), HasSubstr("content"));
  EXPECT_THAT(with(R"("added_tokens": [{"id": 5, "content": "x", "special": "yes"}])"),
              HasSubstr("special"));
  EXPECT_THAT(with(R"("added_tokens": [{"id": 2147483647, "content": "x"}])"),
              HasSubstr("2147483647"));
  EXPECT_THAT(with(R"("added_tokens": [{"id": 0, "content": "x"}])"), HasSubstr("id 0 belongs to"));
  EXPECT_THAT(with(R"("added_tokens": [{"id": 5, "content": "a"}])"), HasSubstr("ids 0 and 5"));
}

class TokenizerLoad : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(dir_); }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  Result<Tokenizer> load(const std::string& tokenizer, const std::string& config) {
    EXPECT_TRUE(write_file_atomically(dir_ / "tokenizer.json", tokenizer).ok());
    EXPECT_TRUE(write_file_atomically(dir_ / "tokenizer_config.json", config).ok());
    return Tokenizer::load(dir_);
  }

  const std::filesystem::path dir_ = std::filesystem::path(testing::TempDir()) /
                                     testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(TokenizerLoad, TakesMissingAddedTokensFromTheConfig) {
  const Result<Tokenizer> tokenizer =
      load(letters_json(R"("added_tokens": [{"id": 5, "content": "<x>"}])"),
           R"({"added_tokens_decoder": {
                 "5": {"content": "<x>", "special": true}, "7": {"content": "<y>", "special": true},
                 "0": {"content": "a", "lstrip": true}}})");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.failure().message;
  EXPECT_THAT(tokenizer.value().encode("b<x> a<y>"), ElementsAre(1, 5, 0, 7));
  EXPECT_TRUE(tokenizer.value().is_special(7));
  EXPECT_FALSE(tokenizer.value().is_special(5)) << "tokenizer.json decides where it speaks";
  EXPECT_EQ(tokenizer.value().vocab_size(), 8);
}

TEST_F(TokenizerLoad, RefusesAConfigThatContradicts) {
  const auto message = [this](const std::string& entries) {
    const Result<Tokenizer> result =
        load(letters_json(R"("added_tokens": [{"id": 5, "content": "<x>"}])"),
             R"({"added_tokens_decoder": )" + entries + "}");
    return result.ok() ? "it was accepted" : result.failure().message;
  };
  EXPECT_THAT(message(R"({"5": {"content": "<z>"}})"), HasSubstr("id 5 belongs to"));
  EXPECT_THAT(message(R"({"6": {"content": "<x>"}})"), HasSubstr("ids 5 and 6"));
  EXPECT_THAT(message(R"({"six": {"content": "<z>"}})"), HasSubstr("six"));
  EXPECT_THAT(message(R"([])"), HasSubstr("added_tokens_decoder"));
}

TEST_F(TokenizerLoad, NamesTheFileThatIsMissing) {
  const Result<Tokenizer> result = Tokenizer::load(dir_);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.failure().message, HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace slip
