// Drafts of several sequences at once have the bits of those that the layer makes slot by slot,
// however the texts came: in pieces, with slots left outstanding, with drafts in between.
#include "engine/draft_passes.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/step_batch.h"
#include "tests/golden/golden_file.h"
#include "tests/models/drafting_model.h"

namespace slip {
namespace {

using KeepUp = DraftPasses::KeepUp;

class DraftPassesTest : public ::testing::TestWithParam<int64_t> {
 protected:
  static std::vector<int32_t> text(int32_t which, size_t length) {
    std::vector<int32_t> ids = prompt_ids("docs_page");
    while (ids.size() < length) ids.push_back(ids[ids.size() / 3]);
    ids.resize(length);
    ids[0] = 700 + which;
    return ids;
  }

  // Logits of the first draft of every slot.
  static LogitRows expected(const std::vector<int32_t>& ids) {
    return DraftingModel(minnow_folder(), fast_backends().front()).run(ids).drafts;
  }

  SequenceId open() {
    const SequenceId sequence = model_.engine().cache().open().value();
    passes_.clear(sequence);
    return sequence;
  }

  // The sequence is given the next tokens of its text.
  void give(SequenceId sequence, const std::vector<int32_t>& ids, int64_t count,
            KeepUp keep_up = KeepUp::always) {
    Cache& cache = model_.engine().cache();
    while (count > 0) {
      const int64_t rows = std::min(count, model_.engine().max_rows());
      const auto piece = std::span(ids).subspan(size_t(cache.length(sequence)), size_t(rows));
      batch_.clear();
      batch_.add(sequence, piece, 0, Cache::Rows::certain);
      batch_.run();
      cache.commit(sequence, rows);
      passes_.follow(sequence, batch_.hidden(0), piece, keep_up);
      count -= rows;
    }
  }

  // Asks all in one round; the token that comes next is the text's.
  struct Asked {
    SequenceId sequence;
    const std::vector<int32_t>* ids;
    const LogitRows* expected;
  };
  void expect_first_drafts(std::span<const Asked> all) {
    std::vector<DraftPasses::Question> questions;
    for (const Asked& each : all)
      questions.push_back({.sequence = each.sequence, .id = (*each.ids)[length_of(each)]});
    passes_.first_round(questions);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto slot = int64_t(length_of(all[i])) - 1;
      const std::span<const float> found = passes_.logits(int64_t(i)).values();
      const std::span<const float> right = all[i].expected->row(slot);
      ASSERT_EQ(found.size(), right.size());
      EXPECT_EQ(std::memcmp(found.data(), right.data(), right.size_bytes()), 0)
          << "sequence " << i << ", slot " << slot;
    }
  }
  size_t length_of(const Asked& each) {
    return size_t(model_.engine().cache().length(each.sequence));
  }

  // Passes as long as those of a server, and so short that what is outstanding does not fit.
  LoadedModel model_{minnow_folder(),
                     fast_backends().front(),
                     {.context = 512, .max_rows = GetParam(), .max_drafts = 1, .sequences = 3}};
  StepBatch batch_{model_.engine()};
  DraftPasses passes_{model_.engine()};
};

TEST_P(DraftPassesTest, DraftsAreThoseOfTheLayerSlotBySlot) {
  const std::vector<int32_t> ids[] = {text(0, 260), text(1, 260), text(2, 260)};
  const LogitRows right[] = {expected(ids[0]), expected(ids[1]), expected(ids[2])};
  std::vector<Asked> all;
  for (size_t i = 0; i < 3; ++i) all.push_back({open(), &ids[i], &right[i]});
  // Short and long pieces; before each round every sequence has another number of outstanding
  // slots: none, some, as many as are kept, more.
  const int64_t pieces[][3] = {{1, 90, 3}, {1, 1, 60}, {7, 2, 1}, {30, 63, 64}, {63, 20, 9}};
  for (const auto& round : pieces) {
    for (size_t i = 0; i < 3; ++i)
      for (int64_t given = 0; given < round[i]; given += 5)
        give(all[i].sequence, ids[i], std::min<int64_t>(5, round[i] - given));
    expect_first_drafts(all);
  }
  for (size_t i = 0; i < 3; ++i) give(all[i].sequence, ids[i], 70);
  expect_first_drafts(all);
  // Others sit a round out, and come along in another order.
  for (size_t i = 0; i < 3; ++i) give(all[i].sequence, ids[i], 1 + int64_t(i));
  expect_first_drafts(std::span(all).subspan(1, 1));
  for (size_t i = 0; i < 3; ++i) give(all[i].sequence, ids[i], 2);
  std::ranges::reverse(all);
  expect_first_drafts(all);
}

// What later drafts leave in the cache is overwritten by the text.
TEST_P(DraftPassesTest, DraftsThatWereWrongLeaveNoTrace) {
  const std::vector<int32_t> ids = text(0, 150);
  const LogitRows right = expected(ids);
  const Asked each{open(), &ids, &right};
  give(each.sequence, ids, 50);
  for (int64_t step = 0; step < 40; ++step) {
    expect_first_drafts({&each, 1});
    ASSERT_TRUE(model_.engine().cache().reserve(each.sequence, int64_t(length_of(each)) + 3).ok());
    for (int32_t wrong = 0; wrong < 3; ++wrong) {
      const DraftPasses::Question question{.sequence = each.sequence, .id = 40 + wrong};
      passes_.next_round({&question, 1});
    }
    give(each.sequence, ids, 1 + step % 3);
  }
}

TEST_P(DraftPassesTest, ACopyGoesOnByItself) {
  const std::vector<int32_t> ids = text(0, 120);
  const LogitRows right = expected(ids);
  Cache& cache = model_.engine().cache();
  const Asked first{open(), &ids, &right};
  give(first.sequence, ids, 70);
  give(first.sequence, ids, 5);
  const SequenceId copied = cache.fork(first.sequence, passes_.outstanding(first.sequence)).value();
  passes_.copy(first.sequence, copied);
  const Asked second{copied, &ids, &right};
  give(first.sequence, ids, 20);
  expect_first_drafts({&first, 1});
  give(copied, ids, 2);
  expect_first_drafts({&second, 1});
}

TEST_P(DraftPassesTest, GivesUpWhatItMayNotCompute) {
  const std::vector<int32_t> ids = text(0, 200);
  const SequenceId sequence = open();
  EXPECT_FALSE(passes_.can_draft(sequence));
  give(sequence, ids, 5, KeepUp::if_free);
  EXPECT_TRUE(passes_.can_draft(sequence));
  give(sequence, ids, 100, KeepUp::if_free);
  EXPECT_FALSE(passes_.can_draft(sequence)) << "100 slots are no longer free";
  give(sequence, ids, 5, KeepUp::always);
  EXPECT_FALSE(passes_.can_draft(sequence)) << "slots are missing for good";
  EXPECT_EQ(passes_.outstanding(sequence), 0);
  passes_.clear(sequence);
  model_.engine().cache().clear(sequence);
  give(sequence, ids, 100, KeepUp::always);
  EXPECT_TRUE(passes_.can_draft(sequence));
}

INSTANTIATE_TEST_SUITE_P(Rows, DraftPassesTest, ::testing::Values(256, 8),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace slip
