// Which of the drafter's tokens are taken for a step, and what is told of those that are made.
#include "engine/draft_chooser.h"

#include <gtest/gtest.h>

#include "engine/session.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

// Allows all tokens but one.
class AllBut final : public Constraint {
 public:
  explicit AllBut(int32_t id) : id_(id) {}
  bool allows(int32_t id) override { return id != id_; }
  const TokenSet& allowed() override { return none_; }
  void advance(int32_t) override {}
  std::unique_ptr<Constraint> clone() const override { return std::make_unique<AllBut>(id_); }

 private:
  int32_t id_;
  TokenSet none_;
};

class DraftChooserTest : public ::testing::Test {
 protected:
  static constexpr int64_t kDrafts = 4;

  // The token that comes next is certain, so that drafts are made once behind a place.
  void begin() {
    session_.clear();
    EXPECT_TRUE(session_.feed(prompt_ids("story")).ok());
  }
  struct Conditions {
    int64_t limit = kDrafts, rows = kDrafts;
    std::vector<int32_t> stop_ids{};
    const Constraint* constraint = nullptr;
  };
  std::vector<int32_t> draft(DraftChooser& chooser, const Conditions& conditions) {
    EXPECT_TRUE(session_.reserve(1 + kDrafts));
    DraftedText text(sampler_, &chances_, kDrafts, conditions.stop_ids, conditions.constraint);
    text.begin(argmax(session_.logits()));
    const DraftChooser::Sequence sequence{session_.sequence(), conditions.limit, &text};
    chooser.draft(session_.draft_passes(), {&sequence, 1}, conditions.rows,
                  DraftChooser::Beside::nothing);
    const std::vector<int32_t> drafts(text.step().begin() + 1, text.step().end());
    verified_ = text.judge(DraftedText::After::chosen);  // none of them is ever right
    made_ = text.counts().made;
    return drafts;
  }
  // Behind the prompt.
  std::vector<int32_t> choose(const Conditions& conditions, int64_t most = kDrafts) {
    DraftChooser chooser(DraftLength::fixed(most), 1);
    begin();
    return draft(chooser, conditions);
  }

  LoadedModel model_{
      minnow_folder(), fast_backends().front(), {.context = 512, .max_drafts = kDrafts}};
  Session session_{model_.engine()};
  Sampler sampler_{{.temperature = 0}, 8192, 8174};
  DraftChances chances_;
  // Of the last draft().
  DraftedText::Verified verified_{};
  int64_t made_ = 0;
};

TEST_F(DraftChooserTest, MakesAsManyAsAreOfUse) {
  const std::vector<int32_t> all = choose({});
  ASSERT_EQ(all.size(), size_t(kDrafts));
  EXPECT_EQ(made_, kDrafts);
  // At the end of a context there may be room for one less than none.
  for (const int64_t limit : {-1, 0, 1, 3}) {
    const std::vector<int32_t> some = choose({.limit = limit});
    EXPECT_EQ(some, std::vector(all.begin(), all.begin() + std::max<int64_t>(limit, 0)));
    EXPECT_EQ(made_, std::max<int64_t>(limit, 0));
  }
  EXPECT_EQ(choose({.rows = 2}).size(), 2u);
  EXPECT_EQ(choose({}, 1).size(), 1u);
}

TEST_F(DraftChooserTest, EndsWhereTheAnswerWill) {
  const std::vector<int32_t> all = choose({});
  ASSERT_EQ(all.size(), size_t(kDrafts));
  const auto place = size_t(std::ranges::find(all, all[2]) - all.begin());
  const std::vector<int32_t> before(all.begin(), all.begin() + int64_t(place));
  EXPECT_EQ(choose({.stop_ids = {5, all[2]}}), before);
  EXPECT_EQ(made_, int64_t(place) + 1) << "it was made, and not taken";
  const AllBut constraint(all[2]);
  EXPECT_EQ(choose({.constraint = &constraint}), before);
  EXPECT_EQ(made_, int64_t(place) + 1);
}

// Where drafts do not pay, prompts are not kept up with, and who is behind cannot draft. The next
// try must come all the same, with prompts that are.
TEST_F(DraftChooserTest, TriesAgainThoughNobodyCouldDraft) {
  using KeepUp = DraftPasses::KeepUp;
  DraftChooser chooser(DraftLength::automatic(kDrafts), 1);
  begin();
  const auto step = [&](int64_t limit) {
    const auto drafts = int64_t(draft(chooser, {.limit = limit}).size());
    chooser.end_step({&verified_, 1}, DraftChooser::Seconds{double(drafts), 1 + double(drafts)});
    const int32_t next = argmax(session_.logits());
    EXPECT_TRUE(limit == 0 || session_.feed({&next, 1}).ok());
    return drafts;
  };
  for (int i = 0; i < 40; ++i) step(kDrafts);
  EXPECT_EQ(chooser.keep_up(), KeepUp::if_free);
  int steps = 0;
  while (steps < 200 && chooser.keep_up() == KeepUp::if_free) {
    EXPECT_EQ(step(0), 0);
    ++steps;
  }
  EXPECT_LT(steps, 100);
  for (int i = 0; i < 300; ++i) step(0);
  EXPECT_EQ(chooser.keep_up(), KeepUp::always) << "until somebody can";
  EXPECT_GT(step(kDrafts) + step(kDrafts), 0);
  EXPECT_EQ(chooser.keep_up(), KeepUp::if_free) << "it did not pay";
}

// What was seen of drafts and of times is all that decides.
TEST_F(DraftChooserTest, LearnsFromStepsThatHadNothingElseInThem) {
  const auto drafts_after = [&](bool timed) {
    DraftChooser chooser(DraftLength::automatic(kDrafts), 1);
    chances_ = DraftChances();
    begin();
    int64_t made = 0;
    for (int step = 0; step < 60; ++step) {
      const std::vector<int32_t> drafts = draft(chooser, {});
      if (step >= 40) made += int64_t(drafts.size());
      // Each costs as much as a token.
      const DraftChooser::Seconds seconds{double(drafts.size()), 1 + double(drafts.size())};
      chooser.end_step({&verified_, 1}, timed ? std::optional(seconds) : std::nullopt);
      const int32_t next = argmax(session_.logits());
      EXPECT_TRUE(session_.feed({&next, 1}).ok());
    }
    return made;
  };
  EXPECT_EQ(drafts_after(false), 20 * 2) << "still at the first step of what is to be learnt";
  EXPECT_LT(drafts_after(true), 8);
}

}  // namespace
}  // namespace slip
