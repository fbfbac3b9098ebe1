#include "text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace slip {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Bpe> read(const std::string& json, bool byte_level = false) {
  TokenContents contents;
  return Bpe::read(parse_json(json, "test").value(), byte_level, contents);
}

std::vector<int32_t> encode(const Bpe& bpe, std::string_view piece) {
  BpeScratch scratch;
  std::vector<int32_t> ids;
  bpe.encode(piece, scratch, ids);
  return ids;
}

constexpr const char* kLetters =
    R"("type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "aa": 6, "?": 7})";

TEST(Bpe, LowestRankFirstThenLeftmost) {
  const auto model = [](const char* merges) {
    return read(std::string("{") + kLetters + ", \"merges\": " + merges + "}").value();
  };
  EXPECT_THAT(encode(model(R"([["a","b"],["b","c"]])"), "abc"), ElementsAre(3, 2));
  EXPECT_THAT(encode(model(R"([["b","c"],["a","b"]])"), "abc"), ElementsAre(0, 4));
  EXPECT_THAT(encode(model(R"(["b c", "a bc"])"), "abc"), ElementsAre(5)) << "merges as lines";
  EXPECT_THAT(encode(model(R"([["a","a"]])"), "aaa"), ElementsAre(6, 0));
}

TEST(Bpe, ATokenThatNoMergeReachesIsNotUsed) {
  const std::string start = std::string("{") + kLetters + R"(, "merges": [["a","b"]])";
  const Bpe bpe = read(start + "}").value();
  EXPECT_THAT(encode(bpe, "abc"), ElementsAre(3, 2));
  EXPECT_THAT(encode(bpe, "ab"), ElementsAre(3));
  EXPECT_THAT(encode(bpe, "ab"), ElementsAre(3)) << "the second time, from what was learnt";
  EXPECT_THAT(encode(read(start + R"(, "ignore_merges": true})").value(), "abc"), ElementsAre(5));
}

TEST(Bpe, UnknownCharacters) {
  const std::string start = std::string("{") + kLetters + R"(, "merges": [])";
  EXPECT_THAT(encode(read(start + "}").value(), "axyb"), ElementsAre(0, 1)) << "dropped";
  EXPECT_THAT(encode(read(start + R"(, "unk_token": "?"})").value(), "axyb"),
              ElementsAre(0, 7, 7, 1));
  EXPECT_THAT(encode(read(start + R"(, "unk_token": "?", "fuse_unk": true})").value(), "axyb"),
              ElementsAre(0, 7, 1));
}

TEST(Bpe, ByteFallbackSpellsACharacter) {
  const Bpe bpe = read(R"({"type": "BPE", "byte_fallback": true, "merges": [],
                           "vocab": {"a": 0, "<0xC3>": 1, "<0xA9>": 2}})")
                      .value();
  EXPECT_THAT(encode(bpe, "a\u00E9a\u00E8"), ElementsAre(0, 1, 2, 0)) << "U+00E8 has one byte only";
}

using Merges = std::vector<std::pair<std::string, std::string>>;

// The definition: the first merge of the list that two neighbours have, leftmost first, until none
// have one.
void merge_plainly(const Merges& merges, std::vector<std::string>& symbols) {
  for (size_t rank = 0; rank < merges.size();) {
    size_t i = 0;
    while (i + 1 < symbols.size() &&
           (symbols[i] != merges[rank].first || symbols[i + 1] != merges[rank].second))
      ++i;
    if (i + 1 >= symbols.size()) {
      ++rank;
      continue;
    }
    symbols[i] += symbols[i + 1];
    symbols.erase(symbols.begin() + int64_t(i) + 1);
    rank = 0;  // a merge can make a pair of lower rank possible
  }
}

// A model of the letters a, b and c with these merges.
Bpe model_of(const Merges& merges, std::map<std::string, int32_t>& ids) {
  ids = {{"a", 0}, {"b", 1}, {"c", 2}};
  std::string vocabulary = R"("a": 0, "b": 1, "c": 2)";
  std::string list;
  for (const auto& [left, right] : merges) {
    const int32_t id = int32_t(ids.size());
    if (ids.try_emplace(left + right, id).second)
      vocabulary += cat(", \"", left, right, "\": ", id);
    list += cat(list.empty() ? "" : ", ", "[\"", left, "\", \"", right, "\"]");
  }
  return read(cat(R"({"type": "BPE", "vocab": {)", vocabulary, R"(}, "merges": [)", list, "]}"))
      .value();
}

void expect_plain_merge(const Bpe& bpe, const Merges& merges,
                        const std::map<std::string, int32_t>& ids, const std::string& text) {
  std::vector<std::string> symbols;
  for (const char letter : text) symbols.emplace_back(1, letter);
  merge_plainly(merges, symbols);
  std::vector<int32_t> expected;
  for (const std::string& symbol : symbols) expected.push_back(ids.at(symbol));
  ASSERT_EQ(encode(bpe, text), expected) << text;
}

// Pieces above 48 symbols take the queue. Both must do what the definition says.
TEST(Bpe, ShortAndLongPiecesFollowTheDefinition) {
  const Merges merges = {{"b", "a"}, {"a", "b"},  {"ab", "ab"}, {"c", "c"},
                         {"a", "a"}, {"ba", "c"}, {"cc", "cc"}};
  std::map<std::string, int32_t> ids;
  const Bpe bpe = model_of(merges, ids);
  uint32_t random = 1;
  for (size_t length = 1; length < 200; ++length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) {
      random = random * 1664525u + 1013904223u;
      text += "abc"[(random >> 16) % 3];
    }
    expect_plain_merge(bpe, merges, ids, text);
  }
}

// Merges drawn at random, so that later ones undercut earlier ones everywhere; texts of runs.
TEST(Bpe, AnyMergesFollowTheDefinition) {
  uint32_t state = 7;
  const auto random = [&](size_t below) {
    state = state * 1664525u + 1013904223u;
    return size_t(state >> 16) % below;
  };
  for (int model = 0; model < 60; ++model) {
    Merges merges;
    std::vector<std::string> tokens = {"a", "b", "c"};
    while (merges.size() < 12) {
      const std::pair merge(tokens[random(tokens.size())], tokens[random(tokens.size())]);
      if (std::ranges::find(merges, merge) != merges.end()) continue;
      merges.push_back(merge);
      tokens.push_back(merge.first + merge.second);
    }
    // What a merge makes may come before what it is made of.
    for (size_t i = merges.size(); i-- > 1;) std::swap(merges[i], merges[random(i + 1)]);
    std::map<std::string, int32_t> ids;
    const Bpe bpe = model_of(merges, ids);
    std::string text;
    while (text.size() < 300) text += std::string(1 + random(90), "abc"[random(3)]);
    expect_plain_merge(bpe, merges, ids, text);
    for (const char letter : {'a', 'b', 'c'})
      expect_plain_merge(bpe, merges, ids, std::string(49 + random(150), letter));
  }
}

TEST(Bpe, BrokenModelsAreRefused) {
  const auto message = [](const std::string& json, bool byte_level = false) {
    const Result<Bpe> result = read(json, byte_level);
    return result.ok() ? "it was accepted" : result.failure().message;
  };
  const auto with_vocab = [&](const std::string& vocab, const std::string& rest = "") {
    return message(R"({"type": "BPE", "vocab": )" + vocab + R"(, "merges": [])" + rest + "}");
  };
  EXPECT_THAT(message("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(message(R"({"type": "Unigram"})"), HasSubstr("Unigram"));
  EXPECT_THAT(message(R"({"type": "BPE", "merges": []})"), HasSubstr("\"vocab\" is missing"));
  EXPECT_THAT(message(R"({"type": "BPE", "vocab": {"a": 0}})"), HasSubstr("\"merges\" is missing"));
  EXPECT_THAT(with_vocab("[]"), HasSubstr("\"vocab\" must be an object"));
  EXPECT_THAT(with_vocab("{}"), HasSubstr("empty"));
  EXPECT_THAT(with_vocab(R"({"a": "x"})"), HasSubstr("must be an integer"));
  EXPECT_THAT(with_vocab(R"({"a": 1.5})"), HasSubstr("must be an integer"));
  EXPECT_THAT(with_vocab(R"({"a": -1})"), HasSubstr("outside"));
  EXPECT_THAT(with_vocab(R"({"a": 18446744073709551615})"), HasSubstr("outside"));
  EXPECT_THAT(with_vocab(R"({"a": 2147483647})"), HasSubstr("only 1 tokens"));
  EXPECT_THAT(with_vocab(R"({"a": 3, "b": 3})"), HasSubstr("id 3 belongs to \"a\" and \"b\""));
  EXPECT_THAT(with_vocab(R"({"a": 0})", R"(, "unk_token": "u")"), HasSubstr("\"u\""));
  EXPECT_THAT(with_vocab(R"({"a": 0})", R"(, "dropout": 0.1)"), HasSubstr("dropout"));
  EXPECT_THAT(with_vocab(R"({"a": 0})", R"(, "end_of_word_suffix": "</w>")"),
              HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(with_vocab(R"({"a": 0})", R"(, "ignore_merges": 1)"), HasSubstr("ignore_merges"));

  const auto with_merge = [&](const std::string& merge) {
    return message(R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [)" + merge +
                   "]}");
  };
  EXPECT_THAT(with_merge(R"(["a", "z"])"), HasSubstr("\"z\", which is not in the vocabulary"));
  EXPECT_THAT(with_merge(R"(["b", "a"])"), HasSubstr("\"ba\", which is not in the vocabulary"));
  EXPECT_THAT(with_merge(R"(["a"])"), HasSubstr("not a pair"));
  EXPECT_THAT(with_merge(R"("a b c")"), HasSubstr("not a pair"));
  EXPECT_THAT(with_merge("7"), HasSubstr("not a pair"));
}

}  // namespace
}  // namespace slip
