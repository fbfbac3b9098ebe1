// Ids and texts of Hugging Face's tokenizers 0.23.2; see tests/data/tokenizer/README.md.
#include "tests/text/tokenizer_vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "text/tokenizer.h"

namespace slip {
namespace {

const std::string kVectors = SLIP_SOURCE_DIR "/tests/data/tokenizer/";

Tokenizer minnow() {
  const std::string path = SLIP_SOURCE_DIR "/models/minnow/tokenizer.json";
  return Tokenizer::from_json(read_text_file(path).value(), path).value();
}

TEST(TokenizerVectors, HandPickedTexts) {
  check_text_vectors(minnow(), kVectors + "encode.jsonl", 219);
}

TEST(TokenizerVectors, RandomTexts) {
  check_text_vectors(minnow(), kVectors + "random.jsonl", 400);
}

TEST(TokenizerVectors, InvalidUtf8) {
  const Tokenizer tokenizer = minnow();
  const std::vector<JsonObject> rows = read_lines(kVectors + "bytes.jsonl");
  EXPECT_EQ(rows.size(), 28u);
  for (const JsonObject& row : rows) {
    const std::string hex = text_of(row.at("bytes"));
    std::string bytes;
    for (size_t i = 0; i + 2 <= hex.size(); i += 2) {
      unsigned value = 0;
      std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
      bytes.push_back(char(value));
    }
    EXPECT_EQ(tokenizer.encode(bytes), ids_of(row.at("ids"))) << hex;
    EXPECT_EQ(tokenizer.encode(text_of(row.at("text"))), ids_of(row.at("ids"))) << hex;
  }
}

TEST(TokenizerVectors, IdLists) { check_id_vectors(minnow(), kVectors + "decode.jsonl", 43); }

std::string read_from_command(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  if (!pipe) return output;
  std::array<char, 65536> buffer;
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
    output.append(buffer.data(), count);
  return output;
}

TEST(TokenizerVectors, PublishedQwen3Vocabulary) {
  const std::string packed = SLIP_SHARED_DIR "/goldens/tokenizer/qwen3.tokenizer.json.xz";
  if (!std::filesystem::exists(packed))
    GTEST_SKIP() << "NOT TESTED against the published Qwen3 vocabulary: no " << packed;
  const std::string json = read_from_command("xz -dc '" + packed + "'");
  if (json.empty())
    GTEST_SKIP() << "NOT TESTED against the published Qwen3 vocabulary: xz is not installed";
  const Result<Tokenizer> tokenizer = Tokenizer::from_json(json, packed);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.failure().message;
  EXPECT_EQ(tokenizer.value().vocab_size(), 151669);
  check_text_vectors(tokenizer.value(), SLIP_SHARED_DIR "/goldens/tokenizer/qwen3.jsonl", 219);
}

}  // namespace
}  // namespace slip
