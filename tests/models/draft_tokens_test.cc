// Which tokens drafts may be.
#include "models/draft_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/checkpoint/test_files.h"
#include "tests/golden/golden_file.h"

namespace slip {
namespace {

using Ids = std::vector<int32_t>;

Ids first_ids(int32_t count) {
  Ids ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(DraftTokens, AreTheAddedOnesAndTheLowest) {
  Ids expected = first_ids(1024 - 14);
  for (int32_t id = 8160; id < 8174; ++id) expected.push_back(id);
  EXPECT_EQ(choose_draft_tokens(minnow_folder(), 8192, 1024).value(), expected);
}

TEST(DraftTokens, AddedOnesTakeAtMostAQuarter) {
  EXPECT_EQ(choose_draft_tokens(minnow_folder(), 8192, 10).value(),
            (Ids{0, 1, 2, 3, 4, 5, 6, 8160, 8161, 8162}));
  EXPECT_EQ(choose_draft_tokens(minnow_folder(), 8192, 2).value(), (Ids{0, 8160}));
}

TEST(DraftTokens, AWholeVocabularyNeedsNoList) {
  EXPECT_EQ(choose_draft_tokens(minnow_folder(), 8192, 8192).value(), Ids{});
  EXPECT_EQ(choose_draft_tokens(minnow_folder(), 8192, 100000).value(), Ids{});
  EXPECT_EQ(lowest_tokens(100, 100), Ids{});
  EXPECT_EQ(lowest_tokens(100, 3), first_ids(3));
}

TEST(DraftTokens, ATokenizerThatSaysNothingLeavesTheLowest) {
  const TempFolder folder;
  EXPECT_EQ(choose_draft_tokens(folder.path(), 100, 5).value(), first_ids(5));
  for (const char* text :
       {"not json", "{}", R"({"added_tokens": 3})", R"({"added_tokens": [1, {}, {"id": "7"}]})",
        R"({"added_tokens": [{"id": 100}, {"id": -1}]})"}) {
    folder.write("tokenizer.json", text);
    EXPECT_EQ(choose_draft_tokens(folder.path(), 100, 5).value(), first_ids(5)) << text;
  }
}

TEST(DraftTokens, NothingAfterTheAddedTokensIsRead) {
  const TempFolder folder;
  folder.write("tokenizer.json", R"({"version": "1.0", "normalizer": {"id": 98},
      "added_tokens": [{"id": 97, "content": "<a>", "more": {"id": 96}}, {"id": [95]}],
      "model": {"id": 94, and so on)");
  EXPECT_EQ(choose_draft_tokens(folder.path(), 100, 5).value(), (Ids{0, 1, 2, 3, 97}));
}

TEST(DraftTokens, AListBesideTheModelDecides) {
  const TempFolder folder;
  folder.write("tokenizer.json", R"({"added_tokens": [{"id": 99}]})");
  folder.write("draft_tokens.json", "[40, 7, 99, 12]");
  EXPECT_EQ(choose_draft_tokens(folder.path(), 100, 3).value(), (Ids{7, 40, 99}));
  EXPECT_EQ(choose_draft_tokens(folder.path(), 100, 50).value(), (Ids{7, 12, 40, 99}))
      << "a short list is taken as it is";
}

TEST(DraftTokens, AListThatIsNoneIsRefused) {
  const TempFolder folder;
  const auto refused = [&](const char* text, const char* part) {
    folder.write("draft_tokens.json", text);
    expect_error(choose_draft_tokens(folder.path(), 100, 3), {"draft_tokens.json", part});
  };
  refused("[1, 2", "not valid JSON");
  refused("{}", "an object");
  refused("[]", "an empty one");
  refused("[5]", "at least 2 token ids for drafts to choose between, found 1");
  refused("[1, 100]", "0 to 99, found 100");
  refused("[-1]", "found -1");
  refused("[1.5]", "found 1.5");
  refused("[\"a\"]", "found \"a\"");
  refused("[4, 5, 4]", "4 is there twice");
}

}  // namespace
}  // namespace slip
