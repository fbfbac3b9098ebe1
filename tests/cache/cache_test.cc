// Pages and slots: who holds what, and that a refusal changes nothing.
#include "cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace slip {
namespace {

using ::testing::HasSubstr;

constexpr PagedKvSpec kKv{.kv_heads = 2, .head_dim = 8};
constexpr RecurrentSpec kState{.key_heads = 2,
                               .value_heads = 4,
                               .key_dim = 3,
                               .value_dim = 5,
                               .conv_tail = 3,
                               .conv_channels = 7};
const CacheFormat kF32{.kv = {KvCodec::f32, KvCodec::f32}};
const CacheFormat kBf16{.kv = {KvCodec::bf16, KvCodec::bf16}};
const std::vector<CacheSpec> kSpecs = {kState, kKv, kState, kKv};

std::vector<int32_t> pages_of(const Cache& cache, SequenceId id) {
  const auto pages = cache.pages(id);
  return {pages.begin(), pages.end()};
}

TEST(CacheCost, IsSummedOverLayersAndSequences) {
  const uint64_t page = 2 * uint64_t(kPageLen) * 2 * 8;  // keys and values of one layer
  const uint64_t state = 4 * 3 * 5 + 3 * 7;
  const CacheCost f32 = cache_cost(kSpecs, kF32);
  EXPECT_EQ(f32.bytes_per_page, 2 * page * 4);
  EXPECT_EQ(f32.bytes_per_sequence, 2 * state * 4);
  const CacheCost bf16 = cache_cost(kSpecs, kBf16);
  EXPECT_EQ(bf16.bytes_per_page, 2 * page * 2);
  EXPECT_EQ(bf16.bytes_per_sequence, f32.bytes_per_sequence) << "recurrent state stays f32";
}

TEST(CacheCost, RoundsContextUpToPages) {
  const CacheCost cost{.bytes_per_page = 100, .bytes_per_sequence = 7};
  EXPECT_EQ(cost.bytes(3, 0), 3u * 7);
  EXPECT_EQ(cost.bytes(3, 1), 3u * 107);
  EXPECT_EQ(cost.bytes(3, kPageLen), 3u * 107);
  EXPECT_EQ(cost.bytes(3, kPageLen + 1), 3u * 207);
}

TEST(CacheCost, DoesNotOverflowWithLongContexts) {
  const std::vector<CacheSpec> specs(60, PagedKvSpec{.kv_heads = 2, .head_dim = 256});
  // 2 * 2 * 256 * 4 bytes per position and layer, a million positions, 64 sequences
  EXPECT_EQ(cache_cost(specs, kF32).bytes(64, 1 << 20), uint64_t{64} * 60 * 4096 << 20);
}

TEST(Cache, HoldsExactlyWhatItsCostSays) {
  for (const CacheFormat& type : {kF32, kBf16}) {
    const Cache cache(kSpecs, type, {.sequences = 3, .pages = 5});
    const CacheCost cost = cache_cost(kSpecs, type);
    EXPECT_EQ(cache.bytes(), 3 * cost.bytes_per_sequence + 5 * cost.bytes_per_page);
  }
}

TEST(Cache, GivesEachLayerTheViewsOfItsSpec) {
  const Cache cache(kSpecs, kBf16, {.sequences = 2, .pages = 3});
  const Cache::Layer& state = cache.layer(0);
  EXPECT_EQ(state.state.shape, (Shape{2, 4, 3, 5}));
  EXPECT_EQ(state.conv_tail.shape, (Shape{2, 3, 7}));
  EXPECT_TRUE(state.kv.keys.empty() && state.kv.values.empty());
  const Cache::Layer& kv = cache.layer(1);
  EXPECT_EQ(kv.kv.keys.shape, (Shape{3, 2, kPageLen, 8}));
  EXPECT_EQ(kv.kv.values.shape, kv.kv.keys.shape);
  EXPECT_EQ(kv.kv.keys.dtype, DType::bf16);
  EXPECT_NE(kv.kv.keys.data, kv.kv.values.data);
  EXPECT_TRUE(kv.state.empty() && kv.conv_tail.empty());
}

TEST(Cache, OpensAsManySequencesAsItHasSlots) {
  Cache cache(kSpecs, kF32, {.sequences = 2, .pages = 4});
  const SequenceId a = cache.open().value(), b = cache.open().value();
  EXPECT_NE(Cache::state_slot(a), Cache::state_slot(b));
  const Result<SequenceId> third = cache.open();
  ASSERT_FALSE(third.ok());
  EXPECT_THAT(third.failure().message, HasSubstr("all 2 sequences"));
  cache.close(a);
  EXPECT_TRUE(cache.open().ok());
}

TEST(Cache, ReservesWholePagesOnce) {
  Cache cache(kSpecs, kF32, {.sequences = 1, .pages = 4});
  const SequenceId id = cache.open().value();
  EXPECT_TRUE(cache.pages(id).empty());
  ASSERT_TRUE(cache.reserve(id, 1).ok());
  EXPECT_EQ(cache.pages(id).size(), 1u);
  ASSERT_TRUE(cache.reserve(id, kPageLen).ok());
  EXPECT_EQ(cache.pages(id).size(), 1u);
  ASSERT_TRUE(cache.reserve(id, kPageLen + 1).ok());
  EXPECT_EQ(cache.pages(id).size(), 2u);
  ASSERT_TRUE(cache.reserve(id, 5).ok()) << "less than it has is nothing to do";
  EXPECT_EQ(cache.pages(id).size(), 2u);
  EXPECT_EQ(cache.free_pages(), 2);
}

TEST(Cache, NeverGivesAPageToTwoSequences) {
  Cache cache(kSpecs, kF32, {.sequences = 3, .pages = 9});
  std::vector<SequenceId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(cache.open().value());
  for (int64_t positions : {1, 70, 130})
    for (const SequenceId id : ids) ASSERT_TRUE(cache.reserve(id, positions).ok());
  std::set<int32_t> seen;
  for (const SequenceId id : ids)
    for (const int32_t page : cache.pages(id)) {
      EXPECT_TRUE(seen.insert(page).second) << "page " << page;
      EXPECT_TRUE(page >= 0 && page < 9);
    }
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_EQ(cache.free_pages(), 0);
}

TEST(Cache, ARefusedReservationChangesNothing) {
  Cache cache(kSpecs, kF32, {.sequences = 2, .pages = 3});
  const SequenceId a = cache.open().value(), b = cache.open().value();
  ASSERT_TRUE(cache.reserve(a, 2 * kPageLen).ok());
  ASSERT_TRUE(cache.reserve(b, 1).ok());
  const std::vector<int32_t> before = pages_of(cache, a);
  const Status refused = cache.reserve(a, 3 * kPageLen);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.failure().message, HasSubstr("room for 128 positions"));
  EXPECT_THAT(refused.failure().message, HasSubstr("192 are needed"));
  EXPECT_EQ(pages_of(cache, a), before);
  EXPECT_EQ(cache.free_pages(), 0);
  cache.close(b);
  EXPECT_TRUE(cache.reserve(a, 3 * kPageLen).ok());
}

TEST(Cache, ClearReturnsPagesAndForgetsState) {
  Cache cache(kSpecs, kF32, {.sequences = 2, .pages = 6});
  const SequenceId a = cache.open().value(), b = cache.open().value();
  ASSERT_TRUE(cache.reserve(a, 3 * kPageLen).ok());
  ASSERT_TRUE(cache.reserve(b, kPageLen).ok());
  const std::vector<int32_t> first = pages_of(cache, a);
  for (const size_t layer : {0, 2})
    for (const View& view : {cache.layer(layer).state, cache.layer(layer).conv_tail})
      std::fill_n(view.f32(), view.count(), 1.0f);
  cache.clear(a);
  EXPECT_TRUE(cache.pages(a).empty());
  EXPECT_EQ(cache.free_pages(), 5);
  for (const size_t layer : {0, 2}) {
    for (const View& view : {cache.layer(layer).state, cache.layer(layer).conv_tail}) {
      const View of_a = view.slice(Cache::state_slot(a), 1),
                 of_b = view.slice(Cache::state_slot(b), 1);
      EXPECT_TRUE(
          std::all_of(of_a.f32(), of_a.f32() + of_a.count(), [](float x) { return x == 0; }));
      EXPECT_TRUE(
          std::all_of(of_b.f32(), of_b.f32() + of_b.count(), [](float x) { return x == 1; }));
    }
  }
  ASSERT_TRUE(cache.reserve(a, 3 * kPageLen).ok());
  EXPECT_EQ(pages_of(cache, a), first) << "a second run lies where the first did";
}

TEST(Cache, AnOpenedSlotHasZeroState) {
  Cache cache(kSpecs, kF32, {.sequences = 1, .pages = 1});
  const View state = cache.layer(0).state;
  std::fill_n(state.f32(), state.count(), 2.0f);
  ASSERT_TRUE(cache.open().ok());
  EXPECT_TRUE(
      std::all_of(state.f32(), state.f32() + state.count(), [](float x) { return x == 0; }));
}

TEST(Cache, ModelsWithoutAttentionNeedNoPages) {
  const std::vector<CacheSpec> specs = {kState};
  Cache cache(specs, kF32, {.sequences = 1, .pages = 0});
  const SequenceId id = cache.open().value();
  EXPECT_EQ(cache_cost(specs, kF32).bytes_per_page, 0u);
  EXPECT_TRUE(cache.reserve(id, 0).ok());
  EXPECT_FALSE(cache.reserve(id, 1).ok()) << "the plan gives such a model pages of zero bytes";
}

TEST(CacheDeathTest, UseOfAClosedSequenceIsABug) {
  Cache cache(kSpecs, kF32, {.sequences = 1, .pages = 1});
  const SequenceId id = cache.open().value();
  cache.close(id);
  EXPECT_DEATH((void)cache.reserve(id, 1), "not open");
}

}  // namespace
}  // namespace slip
