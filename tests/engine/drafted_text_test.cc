// What is taken as a draft, and what is known of it once the tokens are chosen.
#include "engine/drafted_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/decoder.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

using After = DraftedText::After;
using ::testing::ElementsAre;

class DraftedTextTest : public ::testing::Test {
 protected:
  void begin(std::initializer_list<int32_t> drafts) {
    text_.begin(1);
    chances_.begin_step();
    for (const int32_t draft : drafts) {
      chances_.drafted(3.0f);
      EXPECT_TRUE(text_.take(draft));
    }
  }

  Sampler sampler_{{.temperature = 0}, 100, 100};
  DraftChances chances_;
  const std::vector<int32_t> stops_ = {90, 91};
  DraftedText text_{sampler_, &chances_, 4, stops_, nullptr};
};

TEST_F(DraftedTextTest, GoesOnAsLongAsTheDraftIsChosen) {
  EXPECT_FALSE(text_.chose(1)) << "nothing is drafted before the first step";
  begin({11, 12, 13});
  EXPECT_THAT(text_.step(), ElementsAre(1, 11, 12, 13));
  EXPECT_EQ(text_.draft(), 11);
  EXPECT_TRUE(text_.chose(11));
  EXPECT_TRUE(text_.chose(12));
  EXPECT_EQ(text_.row(), 2);
  EXPECT_FALSE(text_.chose(99));
  const DraftedText::Verified verified = text_.judge(After::chosen);
  EXPECT_EQ(verified.drafts, 3);
  EXPECT_EQ(verified.right, 2);
  EXPECT_THAT(text_.counts().judged_at, ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(text_.counts().accepted_at, ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(text_.row(), 0);
  EXPECT_EQ(text_.draft(), std::nullopt);
}

TEST_F(DraftedTextTest, WhatWasNotAskedForIsNeitherRightNorWrong) {
  const double before = chances_.right_in_a_row(2);
  begin({11, 12});
  EXPECT_TRUE(text_.chose(11));
  text_.judge(After::not_asked);
  EXPECT_THAT(text_.counts().judged_at, ElementsAre(1, 0, 0, 0));
  EXPECT_GT(chances_.right_in_a_row(2), before);
  const double right = chances_.right_in_a_row(2);
  begin({11});
  text_.judge(After::not_asked);
  EXPECT_EQ(chances_.right_in_a_row(2), right);
  begin({11});
  text_.judge(After::chosen);
  EXPECT_LT(chances_.right_in_a_row(2), right);
}

TEST_F(DraftedTextTest, TakesNothingBehindTheEnd) {
  begin({11});
  EXPECT_FALSE(text_.take(91));
  EXPECT_THAT(text_.step(), ElementsAre(1, 11));
  EXPECT_EQ(text_.useful(10, 10), 4);
  EXPECT_EQ(text_.useful(3, 10), 2) << "the last one needs no logits";
  EXPECT_EQ(text_.useful(10, 1), 1);
  EXPECT_EQ(text_.useful(1, -1), 0);
}

// As in a server.
TEST(Decoder, DraftsNoEndToken) {
  LoadedModel model(minnow_folder(), fast_backends().front(), {.context = 512, .max_drafts = 4});
  Session session(model.engine());
  const auto drafts_of = [&](std::vector<int32_t> stops) {
    session.clear();
    EXPECT_TRUE(session.feed(prompt_ids("story")).ok());
    Sampler sampler({.temperature = 0}, 8192, 8174);
    SoloDrafting drafting(DraftLength::fixed(4));
    Decoder decoder(session, sampler, &drafting, stops);
    std::vector<int32_t> drafts;
    for (int i = 0; i < 40; ++i) {
      EXPECT_TRUE(decoder.advance(sampler.next(decoder.logits()), 100).ok());
      if (const auto draft = decoder.draft()) drafts.push_back(*draft);
    }
    decoder.finish();
    return drafts;
  };
  const std::vector<int32_t> all = drafts_of({});
  ASSERT_GT(all.size(), 10u);
  EXPECT_THAT(drafts_of({all[5]}), testing::Not(testing::Contains(all[5])));
}

}  // namespace
}  // namespace slip
