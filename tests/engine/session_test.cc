// Sessions: what they keep, what they refuse, and that a refusal leaves them usable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/generate.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
 protected:
  std::vector<float> logits_after(std::span<const int32_t> ids) {
    Session session(model_.engine());
    EXPECT_TRUE(session.feed(ids).ok());
    return {session.logits().begin(), session.logits().end()};
  }

  LoadedModel model_{golden_folder() / "tiny/qwen3_5_moe_split",
                     fast_backends().front(),
                     {.context = 128, .max_rows = 16}};
  const std::vector<int32_t> ids_ =
      GoldenFile(golden_folder() / "tiny/qwen3_5_moe_split/golden.safetensors").ints("short.ids");
};

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST_F(SessionTest, FedInPiecesIsTheSame) {
  const std::vector<float> expected = logits_after(ids_);
  Session session(model_.engine());
  ASSERT_TRUE(session.feed(std::span(ids_).first(10)).ok());
  ASSERT_TRUE(session.feed(std::span(ids_).subspan(10)).ok());
  EXPECT_EQ(copy(session.logits()), expected);
  EXPECT_EQ(session.tokens(), ids_);
}

TEST_F(SessionTest, SyncContinuesWhatItHolds) {
  const std::vector<float> expected = logits_after(ids_);
  Session session(model_.engine());
  EXPECT_EQ(session.sync(std::span(ids_).first(9)).value(), 0);
  EXPECT_EQ(session.sync(ids_).value(), 9);
  EXPECT_EQ(copy(session.logits()), expected);
}

TEST_F(SessionTest, SyncStartsOverWhereItDiffers) {
  const std::vector<float> expected = logits_after(ids_);
  std::vector<int32_t> other = ids_;
  other[4] ^= 1;
  Session session(model_.engine());
  ASSERT_TRUE(session.sync(other).ok());
  EXPECT_EQ(session.sync(ids_).value(), 0);
  EXPECT_EQ(session.tokens(), ids_);
  EXPECT_EQ(copy(session.logits()), expected);
}

TEST_F(SessionTest, SyncToTheSameOrAShorterTextComputesItAgain) {
  const std::vector<float> expected = logits_after(ids_);
  Session session(model_.engine());
  ASSERT_TRUE(session.sync(ids_).ok());
  EXPECT_EQ(session.sync(ids_).value(), 0);
  EXPECT_EQ(copy(session.logits()), expected);
  EXPECT_EQ(session.sync(std::span(ids_).first(5)).value(), 0);
  EXPECT_EQ(session.tokens().size(), 5u);
}

// As a chat whose template drops earlier thoughts: a prompt of two messages, an answer, and a
// prompt that has the first message, something else than the answer, and another message.
class RememberingSession : public ::testing::TestWithParam<int64_t> {
 protected:
  LoadedModel model_{minnow_folder(),
                     fast_backends().front(),
                     {.context = 512, .max_rows = 64, .max_drafts = GetParam(), .checkpoints = 1}};

  static std::vector<int32_t> text(int32_t first, size_t size) {
    std::vector<int32_t> ids(size);
    for (size_t i = 0; i < size; ++i) ids[i] = (first + int32_t(i) * 37) % 8000;
    return ids;
  }
  // 24 greedy tokens behind `prompt`, which is remembered up to `remember`.
  std::vector<int32_t> answer(Session& session, const std::vector<int32_t>& prompt,
                              int64_t remember, int64_t reused) {
    SoloDrafting drafting(DraftLength::fixed(3));
    GenerateRequest request;
    request.prompt = prompt;
    request.remember = remember;
    request.max_tokens = 24;
    request.drafts = GetParam() > 0 ? &drafting : nullptr;
    const auto result = generate(session, nullptr, request, {});
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result.value().reused_tokens, reused);
    return result.value().ids;
  }
};

TEST_P(RememberingSession, GoesBackToTheEndOfAMessage) {
  const std::vector<int32_t> begins = text(5, 150);
  std::vector<int32_t> first = begins, second = begins;
  for (const int32_t id : text(77, 9)) first.push_back(id);
  for (const int32_t id : text(400, 80)) second.push_back(id);
  std::vector<int32_t> third(second.begin(), second.begin() + 200);
  third.push_back(11);

  std::vector<std::vector<int32_t>> right;
  for (const auto* prompt : {&first, &second, &third}) {
    Session session(model_.engine());
    right.push_back(answer(session, *prompt, 0, 0));
  }
  Session session(model_.engine());
  EXPECT_EQ(answer(session, first, 150, 0), right[0]);
  EXPECT_EQ(answer(session, second, 200, 150), right[1]);
  EXPECT_EQ(answer(session, third, 0, 200), right[2]) << "the second place took the first one's";
  EXPECT_EQ(answer(session, first, 0, 0), right[0]) << "nothing of it is remembered any more";
}

TEST_P(RememberingSession, ProgressGoesOnOverTheRememberedPlace) {
  Session session(model_.engine());
  std::vector<int64_t> seen;
  const auto note = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 100);
    seen.push_back(done);
    return true;
  };
  ASSERT_TRUE(session.sync(text(5, 100), note, 70).ok());
  EXPECT_EQ(seen, (std::vector<int64_t>{64, 70, 100}));
  // A stop at the place itself stops.
  const auto stop = [&](int64_t done, int64_t) { return done < 70; };
  EXPECT_FALSE(session.sync(text(6, 100), stop, 70).ok());
  EXPECT_EQ(session.tokens().size(), 70u);
}

// There are pages for one context, and what is remembered has some of them.
TEST_P(RememberingSession, AnAnswerMayTakeThePagesOfWhatIsRemembered) {
  Session session(model_.engine());
  SoloDrafting drafting(DraftLength::fixed(3));
  GenerateRequest request;
  request.prompt = text(5, 400);
  request.remember = 390;
  request.drafts = GetParam() > 0 ? &drafting : nullptr;
  const auto result = generate(session, nullptr, request, {});
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_EQ(result.value().finish, FinishReason::context_full);
  EXPECT_EQ(result.value().ids.size(), 512u - 400 + 1);
}

TEST_P(RememberingSession, AfterClearALongTextFits) {
  Session session(model_.engine());
  ASSERT_TRUE(session.sync(text(5, 160), {}, 150).ok());
  session.clear();
  EXPECT_EQ(session.sync(text(5, 155)).value(), 150) << "it is remembered still";
  session.clear();
  const auto synced = session.sync(text(900, 500));
  ASSERT_TRUE(synced.ok()) << synced.failure().message;
}

INSTANTIATE_TEST_SUITE_P(Drafts, RememberingSession, ::testing::Values(0, 3));

TEST_F(SessionTest, RefusesIdsOutsideTheVocabulary) {
  Session session(model_.engine());
  ASSERT_TRUE(session.feed(ids_).ok());
  for (const int32_t bad : {-1, int32_t(model_.engine().model().info().vocabulary)}) {
    const std::vector<int32_t> ids = {1, bad};
    const Status status = session.feed(ids);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.failure().message, HasSubstr(std::to_string(bad)));
    EXPECT_THAT(status.failure().message, HasSubstr("vocabulary"));
    EXPECT_EQ(session.tokens(), ids_) << "nothing was appended";
  }
}

TEST_F(SessionTest, RefusesTextsBeyondTheContext) {
  Session session(model_.engine());
  const std::vector<int32_t> full(128, 3);
  ASSERT_TRUE(session.feed(full).ok());
  EXPECT_EQ(session.room(), 0);
  const int32_t more = 1;
  const Status status = session.feed({&more, 1});
  ASSERT_FALSE(status.ok());
  for (const char* part : {"129 tokens", "holds 128", "up to 4096"})
    EXPECT_THAT(status.failure().message, HasSubstr(part));
  EXPECT_EQ(session.tokens(), full);
  session.clear();
  EXPECT_GT(session.room(), 0);
  EXPECT_TRUE(session.feed(ids_).ok());
}

TEST_F(SessionTest, ARefusedSyncKeepsWhatWasThere) {
  Session session(model_.engine());
  ASSERT_TRUE(session.sync(ids_).ok());
  EXPECT_FALSE(session.sync(std::vector<int32_t>(129, 3)).ok());
  EXPECT_FALSE(session.sync(std::vector<int32_t>{5, -5}).ok());
  EXPECT_EQ(session.tokens(), ids_);
}

TEST_F(SessionTest, ProgressComesAfterEveryChunkAndMayStop) {
  Session session(model_.engine());
  std::vector<int64_t> seen;
  const auto note = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 40);
    seen.push_back(done);
    return done < 32;
  };
  const std::vector<int32_t> ids(40, 2);
  const Status stopped = session.feed(ids, note);
  EXPECT_FALSE(stopped.ok());
  EXPECT_EQ(seen, (std::vector<int64_t>{16, 32}));
  EXPECT_EQ(session.tokens().size(), 32u) << "what was computed counts";
  EXPECT_EQ(session.sync(ids).value(), 32);
}

TEST_F(SessionTest, FeedEachGivesEveryRow) {
  Session session(model_.engine());
  std::vector<int64_t> positions;
  std::vector<float> last;
  ASSERT_TRUE(
      session
          .feed_each(ids_,
                     [&](int64_t position, std::span<float> logits, std::span<const float> hidden) {
                       positions.push_back(position);
                       last = copy(logits);
                       EXPECT_TRUE(hidden.empty()) << "no MTP layer, no hidden states";
                     })
          .ok());
  ASSERT_EQ(positions.size(), ids_.size());
  for (size_t i = 0; i < positions.size(); ++i) EXPECT_EQ(positions[i], int64_t(i));
  EXPECT_EQ(copy(session.logits()), last);
}

TEST_F(SessionTest, FeedingNothingChangesNothing) {
  Session session(model_.engine());
  ASSERT_TRUE(session.feed(ids_).ok());
  const std::vector<float> before = copy(session.logits());
  EXPECT_TRUE(session.feed({}).ok());
  EXPECT_EQ(copy(session.logits()), before);
}

TEST_F(SessionTest, ANewSessionIsLikeTheFirst) {
  const std::vector<float> first = logits_after(ids_);
  logits_after(std::vector<int32_t>(100, 7));
  EXPECT_EQ(logits_after(ids_), first);
}

}  // namespace
}  // namespace slip
