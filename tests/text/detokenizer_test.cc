#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "text/utf8.h"

namespace slip {
namespace {

Tokenizer minnow() { return Tokenizer::load(SLIP_SOURCE_DIR "/models/minnow").value(); }

// The shape of Gemma's: characters, U+2581 for a space, unknown characters as byte tokens.
Tokenizer byte_fallback() {
  return Tokenizer::from_json(R"({
    "added_tokens": [{"id": 0, "content": "<eos>", "special": true}],
    "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"}]},
    "model": {"type": "BPE", "byte_fallback": true, "merges": [["▁", "a"]], "vocab":
      {"<eos>": 0, "a": 1, "▁": 2, "▁a": 3, "<0xE2>": 4, "<0x82>": 5, "<0xAC>": 6}}})",
                              "test")
      .value();
}

std::vector<std::string> push_all(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Detokenizer detokenizer(tokenizer);
  std::vector<std::string> parts;
  for (const int32_t id : ids) parts.push_back(detokenizer.push(id));
  parts.push_back(detokenizer.finish());
  return parts;
}

TEST(Detokenizer, HoldsBackHalfACharacter) {
  const Tokenizer tokenizer = minnow();
  const std::vector<int32_t> ids = tokenizer.encode("\U0001F389");
  ASSERT_GT(ids.size(), 1u) << "the test needs a character of several tokens";
  std::vector<std::string> expected(ids.size() - 1, "");
  expected.push_back("\U0001F389");
  expected.push_back("");
  EXPECT_EQ(push_all(tokenizer, ids), expected);
}

TEST(Detokenizer, FinishShowsWhatStayedUnfinished) {
  const Tokenizer tokenizer = minnow();
  std::vector<int32_t> ids = tokenizer.encode("a\U0001F389");
  ids.pop_back();
  EXPECT_EQ(push_all(tokenizer, ids).back(), kReplacementCharacter);
  EXPECT_EQ(push_all(tokenizer, tokenizer.encode("a")).back(), "");
}

void check_random_ids(const Tokenizer& tokenizer, uint32_t byte_tokens) {
  uint32_t random = 7;
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids;
    for (int i = 0; i < 12; ++i) {
      random = random * 1664525u + 1013904223u;
      // Mostly single bytes; some words, added tokens and ids without a token.
      const uint32_t all = uint32_t(tokenizer.vocab_size()) + 20;
      ids.push_back(int32_t((random >> 12) % ((random >> 8) % 4 ? byte_tokens : all)));
    }
    std::string joined;
    for (const std::string& part : push_all(tokenizer, ids)) {
      ASSERT_TRUE(is_valid_utf8(part)) << testing::PrintToString(ids);
      joined += part;
    }
    ASSERT_EQ(joined, tokenizer.decode(ids)) << testing::PrintToString(ids);
  }
}

TEST(Detokenizer, PartsAreValidAndJoinToDecode) {
  check_random_ids(minnow(), 256);
  check_random_ids(byte_fallback(), 7);
}

TEST(Detokenizer, LeavesOutSpecialTokensOnRequest) {
  const Tokenizer tokenizer = minnow();
  const std::vector<int32_t> ids = tokenizer.encode("<think>x</think><|im_end|>");
  Detokenizer detokenizer(tokenizer, /*skip_special=*/true);
  std::string text;
  for (const int32_t id : ids) text += detokenizer.push(id);
  EXPECT_EQ(text, "<think>x</think>") << "tags that parsers need are added, but not special";
}

TEST(Detokenizer, FallbackBytesAreTextOnlyAsAWhole) {
  const Tokenizer tokenizer = byte_fallback();
  EXPECT_EQ(tokenizer.encode("a \u20ACa a"), (std::vector<int32_t>{1, 2, 4, 5, 6, 1, 3}));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 4, 5, 6, 3}), "a\u20AC a");
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{4, 5, 6, 4, 1}), r + r + r + r + "a");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{4, 5}), r + r);
}

}  // namespace
}  // namespace slip
