// Sequences that run and texts that are remembered, on a cache without a model.
#include "engine/sequence_pool.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

using Reuse = SequencePool::Reuse;

std::vector<int32_t> tokens_of(size_t length, int32_t start) {
  std::vector<int32_t> ids(length);
  for (size_t i = 0; i < length; ++i) ids[i] = start + int32_t(i % 50);
  return ids;
}

class SequencePoolTest : public ::testing::Test {
 protected:
  static PrefixIndex::Text text(const std::vector<int32_t>& ids) {
    return {.salt = "", .tokens = ids};
  }
  // As if the sequence had been computed up to `length`.
  static void compute(Cache& cache, SequenceId sequence, int64_t length) {
    const int64_t rows = length - cache.length(sequence);
    ASSERT_TRUE(cache.extend(sequence, rows, Cache::Rows::certain).ok());
    cache.commit(sequence, rows);
  }
  // Runs a text to its end and remembers it.
  void remember(Cache& cache, SequencePool& pool, const std::vector<int32_t>& ids) {
    const auto started = pool.start(text(ids), Reuse::no);
    ASSERT_TRUE(started);
    compute(cache, started->sequence, int64_t(ids.size()));
    pool.end(started->sequence, text(ids));
  }
  static Cache make_cache(int64_t sequences, int64_t pages) {
    return Cache(std::vector<CacheSpec>{PagedKvSpec{.kv_heads = 1, .head_dim = 8},
                                        RecurrentSpec{.key_heads = 1,
                                                      .value_heads = 1,
                                                      .key_dim = 4,
                                                      .value_dim = 4,
                                                      .conv_tail = 3,
                                                      .conv_channels = 4}},
                 {}, {.sequences = sequences, .pages = pages});
  }
};

TEST_F(SequencePoolTest, StartsNoMoreThanMayRun) {
  Cache cache = make_cache(4, 16);
  SequencePool pool(cache, 2, nullptr);
  const std::vector<int32_t> ids = tokens_of(20, 0);
  const auto first = pool.start(text(ids), Reuse::yes), second = pool.start(text(ids), Reuse::yes);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->sequence, second->sequence);
  EXPECT_FALSE(pool.start(text(ids), Reuse::yes));
  pool.end(first->sequence);
  EXPECT_TRUE(pool.start(text(ids), Reuse::yes));
}

TEST_F(SequencePoolTest, GoesOnFromTheLongestBeginningThatIsNotAll) {
  Cache cache = make_cache(6, 32);
  SequencePool pool(cache, 2, nullptr);
  const std::vector<int32_t> all = tokens_of(200, 0);
  const auto first = [&](size_t length) {
    return std::vector<int32_t>(all.begin(), all.begin() + int64_t(length));
  };
  for (const size_t length : {40, 100, 199}) remember(cache, pool, first(length));
  const auto start = [&](size_t length, Reuse reuse) {
    const std::vector<int32_t> ids = first(length);
    const SequencePool::Started started = pool.start(text(ids), reuse).value();
    EXPECT_EQ(cache.length(started.sequence), started.length);
    pool.end(started.sequence);
    return started.length;
  };
  EXPECT_EQ(start(200, Reuse::yes), 199);
  EXPECT_EQ(start(199, Reuse::yes), 100) << "the last token has to be computed";
  EXPECT_EQ(start(60, Reuse::yes), 40);
  EXPECT_EQ(start(40, Reuse::yes), 0);
  EXPECT_EQ(start(200, Reuse::no), 0);
}

TEST_F(SequencePoolTest, WhatIsRememberedGivesWayOldestFirst) {
  Cache cache = make_cache(4, 6);
  SequencePool pool(cache, 1, nullptr);
  const std::vector<int32_t> older = tokens_of(128, 0), newer = tokens_of(128, 1000);
  remember(cache, pool, older);
  remember(cache, pool, newer);
  EXPECT_EQ(pool.pages().free, 6) << "what is remembered counts as free";
  EXPECT_EQ(pool.pages().remembered, 4);

  const std::vector<int32_t> ids = tokens_of(100, 2000);
  const auto running = pool.start(text(ids), Reuse::yes);
  ASSERT_TRUE(running);
  EXPECT_EQ(pool.pages().remembered, 4) << "there was room beside them";
  EXPECT_TRUE(pool.reserve(running->sequence, 200));
  EXPECT_EQ(pool.pages().remembered, 2);
  pool.end(running->sequence);
  const auto went_on = [&](std::vector<int32_t> beginning) {
    beginning.push_back(7);
    const auto started = pool.start(text(beginning), Reuse::yes);
    pool.end(started->sequence);
    return started->length;
  };
  EXPECT_EQ(went_on(older), 0);
  EXPECT_EQ(went_on(newer), 128);

  const auto again = pool.start(text(ids), Reuse::yes);
  EXPECT_TRUE(pool.reserve(again->sequence, 6 * kPageLen));
  EXPECT_FALSE(pool.reserve(again->sequence, 6 * kPageLen + 1)) << "all is with one that runs";
  EXPECT_EQ(pool.pages().remembered, 0);
}

TEST_F(SequencePoolTest, WithoutAPageForACopyWhatIsRememberedGivesItself) {
  Cache cache = make_cache(3, 2);
  SequencePool pool(cache, 2, nullptr);
  std::vector<int32_t> ids = tokens_of(100, 0);
  remember(cache, pool, ids);
  ids.push_back(7);
  const auto started = pool.start(text(ids), Reuse::yes);
  ASSERT_TRUE(started);
  EXPECT_EQ(started->length, 100);
  EXPECT_EQ(cache.length(started->sequence), 100);
  EXPECT_EQ(pool.pages().remembered, 0);
  pool.end(started->sequence);
  EXPECT_EQ(cache.free_pages(), 2);
}

TEST_F(SequencePoolTest, WithoutASlotForACopyTheOthersAreForgottenFirst) {
  Cache cache = make_cache(2, 8);
  SequencePool pool(cache, 1, nullptr);
  std::vector<int32_t> ids = tokens_of(100, 0);
  remember(cache, pool, tokens_of(100, 1000));
  remember(cache, pool, ids);
  ids.push_back(7);
  const auto started = pool.start(text(ids), Reuse::yes);
  ASSERT_TRUE(started);
  EXPECT_EQ(started->length, 100);
  EXPECT_EQ(pool.pages().remembered, 1) << "its own last page; the full one is shared";
  pool.end(started->sequence);
  EXPECT_EQ(pool.start(text(ids), Reuse::yes)->length, 100) << "it is still remembered";
}

TEST_F(SequencePoolTest, NewcomersLeaveAPageToEachThatRuns) {
  Cache cache = make_cache(4, 4);
  SequencePool pool(cache, 3, nullptr);
  const auto first = pool.start(text(tokens_of(64, 0)), Reuse::no);
  ASSERT_TRUE(first);
  EXPECT_FALSE(pool.start(text(tokens_of(128, 100)), Reuse::no)) << "3 pages, and 1 for the first";
  EXPECT_TRUE(pool.start(text(tokens_of(100, 100)), Reuse::no));
}

TEST_F(SequencePoolTest, RemembersNothingWithoutSlotsForIt) {
  Cache cache = make_cache(2, 8);
  SequencePool pool(cache, 2, nullptr);
  remember(cache, pool, tokens_of(100, 0));
  EXPECT_EQ(pool.pages().remembered, 0);
  EXPECT_EQ(cache.free_pages(), 8);
}

TEST_F(SequencePoolTest, ACheckpointStaysWhereItWasMade) {
  Cache cache = make_cache(3, 8);
  SequencePool pool(cache, 1, nullptr);
  std::vector<int32_t> ids = tokens_of(150, 0);
  const std::vector<int32_t> beginning(ids.begin(), ids.begin() + 70);
  const auto started = pool.start(text(ids), Reuse::no);
  compute(cache, started->sequence, 70);
  pool.remember(text(beginning), started->sequence);
  compute(cache, started->sequence, 150);
  pool.end(started->sequence);
  EXPECT_EQ(pool.pages().remembered, 2);
  EXPECT_EQ(pool.start(text(ids), Reuse::yes)->length, 70);
}

TEST_F(SequencePoolTest, GivesEverythingBack) {
  Cache cache = make_cache(4, 8);
  {
    SequencePool pool(cache, 2, nullptr);
    remember(cache, pool, tokens_of(100, 0));
    ASSERT_TRUE(pool.start(text(tokens_of(100, 500)), Reuse::no));
    EXPECT_LT(cache.free_pages(), 8);
  }
  EXPECT_EQ(cache.free_pages(), 8);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(cache.open().ok());
}

}  // namespace
}  // namespace slip
