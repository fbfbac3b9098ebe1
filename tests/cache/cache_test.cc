// Pages and slots: who holds what, and that a refusal changes nothing.
#include "cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/tensor/counting_memory.h"

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
const CacheFormat kCoded{.kv = {KvCodec::tq4, KvCodec::tq3}, .record_rows = 3};
const std::vector<CacheSpec> kSpecs = {kState, kKv, kState, kKv};

// Everything that a layer may have, in no particular order.
std::vector<View> views_of(const Cache::Layer& layer) {
  std::vector<View> views;
  for (const View& view :
       {layer.kv.keys, layer.kv.values, layer.kv.key_scales, layer.kv.value_scales,
        layer.kv.key_tail, layer.kv.value_tail, layer.state, layer.conv_tail, layer.record.keys,
        layer.record.deltas, layer.record.decays})
    if (!view.empty()) views.push_back(view);
  return views;
}

// Byte patterns that tell parts of the cache apart.
void fill(const View& view, int64_t index, int64_t count, int pattern) {
  const View part = view.slice(index, count);
  std::memset(part.data, pattern, part.bytes());
}
bool is_filled(const View& view, int64_t index, int64_t count, int pattern) {
  const View part = view.slice(index, count);
  return std::all_of(part.data, part.data + part.bytes(),
                     [&](std::byte b) { return b == std::byte(pattern); });
}

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

TEST(CacheCost, CodedRecipesKeepScalesAndAnUncodedTail) {
  // Per position and head: 4 and 3 bits for each of 8 values, and two scales of two bytes.
  const CacheCost cost = cache_cost(kSpecs, {.kv = kCoded.kv});
  EXPECT_EQ(cost.bytes_per_page, 2 * uint64_t(kPageLen) * 2 * (4 + 2 + 3 + 2));
  const uint64_t tail = 2 * 2 * 2 * uint64_t(kPageLen) * 8 * 2;  // two pages of bf16
  EXPECT_EQ(cost.bytes_per_sequence, cache_cost(kSpecs, kBf16).bytes_per_sequence + 2 * tail);
}

TEST(CacheCost, RecordsTakeTwoSidesAndALongerTail) {
  CacheFormat format = kF32;
  format.record_rows = 3;
  const uint64_t row = 2 * 3 + 4 * 5 + 4;  // keys, deltas, decays
  EXPECT_EQ(cache_cost(kSpecs, format).bytes_per_sequence,
            cache_cost(kSpecs, kF32).bytes_per_sequence + 2 * 4 * (2 * 3 * row + 3 * 7));
  EXPECT_EQ(cache_cost(kSpecs, format).bytes_per_page, cache_cost(kSpecs, kF32).bytes_per_page);
}

TEST(CacheCost, APageHasThePositionsOfAllLayers) {
  const std::vector<CacheSpec> specs(60, PagedKvSpec{.kv_heads = 2, .head_dim = 256});
  // 2 * 2 * 256 * 4 bytes per position and layer
  EXPECT_EQ(cache_cost(specs, kF32).bytes_per_page, uint64_t{60} * 4096 * kPageLen);
}

TEST(Cache, HoldsExactlyWhatItsCostSays) {
  for (const CacheFormat& type : {kF32, kBf16, kCoded}) {
    CountingMemory memory;
    const Cache cache(kSpecs, type, {.sequences = 3, .pages = 5}, memory);
    const CacheCost cost = cache_cost(kSpecs, type);
    EXPECT_EQ(memory.taken(), 3 * cost.bytes_per_sequence + 5 * cost.bytes_per_page);
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

TEST(Cache, GivesRecordsAndCodesTheirViews) {
  const Cache cache(kSpecs, kCoded, {.sequences = 2, .pages = 3});
  const Cache::Layer& state = cache.layer(0);
  EXPECT_EQ(state.conv_tail.shape, (Shape{2, 3 + 3, 7}));
  EXPECT_EQ(state.record.keys.shape, (Shape{4, 3, 2, 3}));
  EXPECT_EQ(state.record.deltas.shape, (Shape{4, 3, 4, 5}));
  EXPECT_EQ(state.record.decays.shape, (Shape{4, 3, 4}));
  const KvPages& kv = cache.layer(1).kv;
  EXPECT_EQ(kv.keys.shape, (Shape{3, 2, kPageLen * 4}));
  EXPECT_EQ(kv.values.shape, (Shape{3, 2, kPageLen * 3}));
  EXPECT_EQ(kv.key_scales.shape, (Shape{3, 2, kPageLen}));
  EXPECT_EQ(kv.value_scales.shape, kv.key_scales.shape);
  EXPECT_EQ(kv.key_tail.shape, (Shape{2, 2, 2 * kPageLen, 8}));
  EXPECT_EQ(kv.value_tail.shape, kv.key_tail.shape);
  EXPECT_EQ(kv.recipe, kCoded.kv);

  const Cache plain(kSpecs, kF32, {.sequences = 2, .pages = 3});
  EXPECT_TRUE(plain.layer(0).record.keys.empty()) << "nothing to record";
  EXPECT_TRUE(plain.layer(1).kv.key_tail.empty() && plain.layer(1).kv.key_scales.empty());
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

TEST(Cache, CertainRowsGoOnFromTheLast) {
  Cache cache(kSpecs, kF32, {.sequences = 2, .pages = 3});
  ASSERT_TRUE(cache.open().ok());
  const SequenceId id = cache.open().value();
  const Span first = cache.extend(id, 5, Cache::Rows::certain).value();
  EXPECT_EQ(first.rows, 5);
  EXPECT_EQ(first.start, 0);
  EXPECT_EQ(first.state_slot, Cache::state_slot(id));
  EXPECT_EQ(first.pages.size(), 1u);
  EXPECT_FALSE(first.record);
  EXPECT_EQ(first.replay, 0);
  EXPECT_EQ(cache.length(id), 0) << "not before commit()";
  cache.commit(id, 5);
  EXPECT_EQ(cache.length(id), 5);
  const Span second = cache.extend(id, kPageLen, Cache::Rows::certain).value();
  EXPECT_EQ(second.start, 5);
  EXPECT_EQ(second.pages.size(), 2u);
  EXPECT_EQ(second.replay, 0);
  EXPECT_EQ(second.record_side, first.record_side) << "nothing was recorded";
}

TEST(Cache, TentativeRowsAreReplayedByTheNextStepFromTheOtherSide) {
  Cache cache(kSpecs, kCoded, {.sequences = 1, .pages = 2});
  const SequenceId id = cache.open().value();
  int32_t side = cache.extend(id, 0, Cache::Rows::certain).value().record_side;
  cache.commit(id, 0);
  int32_t accepted_before = 0;
  int64_t length = 0;
  for (const int64_t accepted : {0, 2, 3, 1}) {
    const Span span = cache.extend(id, 3, Cache::Rows::tentative).value();
    EXPECT_TRUE(span.record);
    EXPECT_EQ(span.start, length);
    EXPECT_EQ(span.replay, accepted_before);
    EXPECT_EQ(span.record_side, side);
    cache.commit(id, accepted);
    length += accepted;
    EXPECT_EQ(cache.length(id), length);
    accepted_before = int32_t(accepted);
    side = 1 - side;
  }
  // A certain step replays too, and leaves nothing to replay; sides rest.
  for (const int32_t replay : {1, 0}) {
    const Span span = cache.extend(id, 2, Cache::Rows::certain).value();
    EXPECT_FALSE(span.record);
    EXPECT_EQ(span.replay, replay);
    EXPECT_EQ(span.record_side, side);
    cache.commit(id, 2);
  }
}

TEST(Cache, ClearForgetsWhatWasToBeReplayed) {
  Cache cache(kSpecs, kCoded, {.sequences = 1, .pages = 1});
  const SequenceId id = cache.open().value();
  ASSERT_TRUE(cache.extend(id, 3, Cache::Rows::tentative).ok());
  cache.commit(id, 2);
  ASSERT_TRUE(cache.extend(id, 3, Cache::Rows::tentative).ok());
  cache.clear(id);  // in the middle of a step, when a request is given up
  EXPECT_EQ(cache.length(id), 0);
  const Span span = cache.extend(id, 1, Cache::Rows::certain).value();
  EXPECT_EQ(span.start, 0);
  EXPECT_EQ(span.replay, 0);
}

TEST(Cache, ARefusedExtensionChangesNothing) {
  Cache cache(kSpecs, kCoded, {.sequences = 1, .pages = 1});
  const SequenceId id = cache.open().value();
  ASSERT_TRUE(cache.extend(id, kPageLen - 2, Cache::Rows::certain).ok());
  cache.commit(id, kPageLen - 2);
  ASSERT_TRUE(cache.extend(id, 1, Cache::Rows::tentative).ok());
  cache.commit(id, 1);
  const Result<Span> refused = cache.extend(id, 3, Cache::Rows::tentative);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.failure().message, HasSubstr("room for 64 positions"));
  EXPECT_EQ(cache.length(id), kPageLen - 1);
  EXPECT_EQ(cache.pages(id).size(), 1u);
  const Span span = cache.extend(id, 1, Cache::Rows::certain).value();
  EXPECT_EQ(span.start, kPageLen - 1);
  EXPECT_EQ(span.replay, 1) << "still to be replayed";
}

TEST(Cache, ForkSharesFullPagesAndCopiesTheRest) {
  for (const CacheFormat& format : {kF32, kCoded}) {
    Cache cache(kSpecs, format, {.sequences = 3, .pages = 8});
    ASSERT_TRUE(cache.open().ok());
    const SequenceId from = cache.open().value();
    ASSERT_TRUE(cache.extend(from, 2 * kPageLen + 5, Cache::Rows::certain).ok());
    cache.commit(from, 2 * kPageLen + 5);
    ASSERT_TRUE(cache.reserve(from, 4 * kPageLen).ok());  // a page that holds nothing yet
    const std::vector<int32_t> pages = pages_of(cache, from);
    // A pattern per page or slot.
    for (size_t layer = 0; layer < kSpecs.size(); ++layer)
      for (const View& view : views_of(cache.layer(layer)))
        for (int64_t i = 0; i < view.shape[0]; ++i) fill(view, i, 1, int(i) + 1);

    const SequenceId to = cache.fork(from).value();
    EXPECT_EQ(cache.length(to), cache.length(from));
    const std::vector<int32_t> copied = pages_of(cache, to);
    ASSERT_EQ(copied.size(), 3u);
    EXPECT_TRUE(std::equal(copied.begin(), copied.begin() + 2, pages.begin()));
    EXPECT_EQ(std::count(pages.begin(), pages.end(), copied[2]), 0);
    EXPECT_EQ(cache.free_pages(), 3);

    const int32_t from_slot = Cache::state_slot(from), to_slot = Cache::state_slot(to);
    for (size_t l = 0; l < kSpecs.size(); ++l) {
      const Cache::Layer& layer = cache.layer(l);
      for (const View& view :
           {layer.kv.keys, layer.kv.values, layer.kv.key_scales, layer.kv.value_scales})
        for (int32_t page = 0; page < 8 && !view.empty(); ++page)
          EXPECT_TRUE(is_filled(view, page, 1, (page == copied[2] ? pages[2] : page) + 1));
      for (const View& view :
           {layer.state, layer.conv_tail, layer.kv.key_tail, layer.kv.value_tail})
        for (int32_t slot = 0; slot < 3 && !view.empty(); ++slot)
          EXPECT_TRUE(is_filled(view, slot, 1, (slot == to_slot ? from_slot : slot) + 1));
      for (const View& view : {layer.record.keys, layer.record.deltas, layer.record.decays})
        for (int32_t slot = 0; slot < 3 && !view.empty(); ++slot)
          for (int32_t side : {0, 1})
            EXPECT_TRUE(is_filled(view, 2 * slot + side, 1,
                                  2 * (slot == to_slot ? from_slot : slot) + side + 1));
    }
  }
}

TEST(Cache, ForkGoesOnWhereItsSourceStands) {
  Cache cache(kSpecs, kCoded, {.sequences = 2, .pages = 4});
  const SequenceId from = cache.open().value();
  ASSERT_TRUE(cache.extend(from, 3, Cache::Rows::tentative).ok());
  cache.commit(from, 2);
  const SequenceId to = cache.fork(from).value();
  const Span of_from = cache.extend(from, 1, Cache::Rows::certain).value();
  const Span of_to = cache.extend(to, 1, Cache::Rows::certain).value();
  EXPECT_EQ(of_to.start, 2);
  EXPECT_EQ(of_to.replay, 2);
  EXPECT_EQ(of_to.record_side, of_from.record_side);
  EXPECT_NE(of_to.state_slot, of_from.state_slot);
  EXPECT_NE(of_to.pages[0], of_from.pages[0]) << "a page that is being filled is nobody else's";
}

// Clearing takes as long as a step where states are large.
TEST(Cache, StateIsClearedWhenASequenceBeginsAndNotBefore) {
  Cache cache(kSpecs, kF32, {.sequences = 1, .pages = 4});
  const SequenceId first = cache.open().value();
  const auto slot_is = [&](int pattern) {
    const Cache::Layer& layer = cache.layer(0);
    return is_filled(layer.state, 0, 1, pattern) && is_filled(layer.conv_tail, 0, 1, pattern);
  };
  for (const View& view : views_of(cache.layer(0))) fill(view, 0, 1, 7);
  cache.close(first);
  EXPECT_TRUE(slot_is(7));
  ASSERT_EQ(cache.open().value(), first);
  EXPECT_TRUE(slot_is(0));
}

TEST(Cache, AForkAtTheEndOfAPageTakesNoPage) {
  Cache cache(kSpecs, kF32, {.sequences = 2, .pages = 1});
  const SequenceId from = cache.open().value();
  ASSERT_TRUE(cache.extend(from, kPageLen, Cache::Rows::certain).ok());
  cache.commit(from, kPageLen);
  const SequenceId to = cache.fork(from).value();
  EXPECT_EQ(pages_of(cache, to), pages_of(cache, from));
  EXPECT_EQ(cache.length(to), kPageLen);
}

TEST(Cache, PagesOfUnsettledPositionsAreNotShared) {
  Cache cache(kSpecs, kF32, {.sequences = 2, .pages = 8});
  const SequenceId from = cache.open().value();
  ASSERT_TRUE(cache.extend(from, 3 * kPageLen, Cache::Rows::certain).ok());
  cache.commit(from, 3 * kPageLen);
  const std::vector<int32_t> pages = pages_of(cache, from);
  const View keys = cache.layer(1).kv.keys;
  for (const int32_t page : pages) fill(keys, page, 1, page + 1);
  for (const auto& [unsettled, shared] : {std::pair(0, 3), {1, 2}, {64, 2}, {65, 1}, {500, 0}}) {
    const SequenceId to = cache.fork(from, unsettled).value();
    const std::vector<int32_t> copied = pages_of(cache, to);
    ASSERT_EQ(copied.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(copied[i] == pages[i], int(i) < shared) << unsettled << " unsettled, page " << i;
      EXPECT_TRUE(is_filled(keys, copied[i], 1, pages[i] + 1));
    }
    cache.close(to);
  }
}

TEST(Cache, TrimReturnsPagesThatHoldNothing) {
  Cache cache(kSpecs, kF32, {.sequences = 1, .pages = 8});
  const SequenceId id = cache.open().value();
  ASSERT_TRUE(cache.extend(id, kPageLen + 1, Cache::Rows::certain).ok());
  cache.commit(id, kPageLen + 1);
  ASSERT_TRUE(cache.reserve(id, 6 * kPageLen).ok());
  EXPECT_EQ(cache.free_pages(), 2);
  cache.trim(id);
  EXPECT_EQ(cache.free_pages(), 6);
  EXPECT_EQ(cache.length(id), kPageLen + 1);
  EXPECT_FALSE(cache.open().ok());
  cache.close(id);
  EXPECT_TRUE(cache.open().ok());
}

TEST(Cache, SharedPagesAreFreeWhenTheLastHolderIsGone) {
  Cache cache(kSpecs, kF32, {.sequences = 3, .pages = 6});
  const SequenceId a = cache.open().value();
  ASSERT_TRUE(cache.extend(a, 2 * kPageLen + 1, Cache::Rows::certain).ok());
  cache.commit(a, 2 * kPageLen + 1);
  const SequenceId b = cache.fork(a).value();
  const SequenceId c = cache.fork(b).value();
  EXPECT_EQ(cache.free_pages(), 1);  // two shared, three of one each
  cache.close(a);
  EXPECT_EQ(cache.free_pages(), 2);
  cache.clear(c);
  EXPECT_EQ(cache.free_pages(), 3);
  cache.close(b);
  EXPECT_EQ(cache.free_pages(), 6);
  // Every page is there once.
  ASSERT_TRUE(cache.reserve(c, 6 * kPageLen).ok());
  const std::vector<int32_t> pages = pages_of(cache, c);
  EXPECT_EQ(std::set<int32_t>(pages.begin(), pages.end()).size(), 6u);
}

TEST(Cache, ARefusedForkChangesNothing) {
  Cache cache(kSpecs, kF32, {.sequences = 2, .pages = 2});
  const SequenceId from = cache.open().value();
  ASSERT_TRUE(cache.extend(from, kPageLen + 1, Cache::Rows::certain).ok());
  cache.commit(from, kPageLen + 1);
  const std::vector<int32_t> pages = pages_of(cache, from);
  ASSERT_FALSE(cache.fork(from).ok()) << "no page for the rest";
  EXPECT_EQ(pages_of(cache, from), pages);
  EXPECT_EQ(cache.free_pages(), 0);
  const SequenceId other = cache.open().value();  // the slot was given back
  EXPECT_TRUE(cache.pages(other).empty());
  const Result<SequenceId> no_slot = cache.fork(from);
  ASSERT_FALSE(no_slot.ok());
  EXPECT_THAT(no_slot.failure().message, HasSubstr("all 2 sequences"));
  cache.close(from);
  EXPECT_EQ(cache.free_pages(), 2) << "no fork holds a page";
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

TEST(CacheDeathTest, StepsThatCannotBeAreBugs) {
  Cache cache(kSpecs, kCoded, {.sequences = 2, .pages = 1});
  const SequenceId id = cache.open().value();
  EXPECT_DEATH((void)cache.extend(id, 4, Cache::Rows::tentative), "4 tentative rows.*records 3");
  ASSERT_TRUE(cache.extend(id, 2, Cache::Rows::certain).ok());
  EXPECT_DEATH((void)cache.extend(id, 1, Cache::Rows::certain), "before the last one");
  EXPECT_DEATH((void)cache.fork(id), "between extend.. and commit");
  EXPECT_DEATH(cache.commit(id, 3), "commit of 3 rows of 2");
  EXPECT_DEATH(cache.commit(id, 1), "certain rows cannot be rejected");
}

constexpr WindowKvSpec kWindow{.kv_heads = 2, .head_dim = 8, .window = 100};
const std::vector<CacheSpec> kWindowSpecs = {kWindow, kKv, SharedKvSpec{0}, SharedKvSpec{1}};
const CacheFormat kSteps{.kv = {KvCodec::f32, KvCodec::f32}, .record_rows = 5, .step_rows = 30};

TEST(CacheCost, WindowsCostTheSameWhateverTheContext) {
  const CacheCost cost = cache_cost(kWindowSpecs, kSteps);
  EXPECT_EQ(cost.bytes_per_page, cache_cost(std::vector<CacheSpec>{kKv}, kF32).bytes_per_page);
  // 129 positions may be needed at once; they may lie in four pages.
  EXPECT_EQ(cost.bytes_per_sequence, 4 * uint64_t(kPageLen) * 2 * 2 * 8 * 4);
  CacheFormat coded = kSteps;
  coded.kv = kCoded.kv;
  const CacheCost coded_cost = cache_cost(std::vector<CacheSpec>{kWindow}, coded);
  EXPECT_EQ(coded_cost.bytes_per_sequence, cost.bytes_per_sequence / 2) << "windows stay bf16";
  EXPECT_EQ(coded_cost.bytes_per_page, 0u);
}

TEST(Cache, LayersThatShareReadTheSameKeys) {
  CountingMemory memory;
  Cache cache(kWindowSpecs, kSteps, {.sequences = 2, .pages = 4}, memory);
  EXPECT_EQ(cache.layer(2).kv.keys.data, cache.layer(0).kv.keys.data);
  EXPECT_EQ(cache.layer(2).kv.ring_pages, 4);
  EXPECT_EQ(cache.layer(3).kv.values.data, cache.layer(1).kv.values.data);
  const CacheCost cost = cache_cost(kWindowSpecs, kSteps);
  EXPECT_EQ(memory.taken(), 2 * cost.bytes_per_sequence + 4 * cost.bytes_per_page);
}

// Every position that a row may see lies in another place than those a step writes, also after the
// step was rejected.
TEST(Cache, RingsKeepWhatRowsSee) {
  Cache cache(kWindowSpecs, kSteps, {.sequences = 2, .pages = 20});
  ASSERT_TRUE(cache.open().ok());
  const SequenceId id = cache.open().value();
  const KvPages& kv = cache.layer(0).kv;
  std::vector<int64_t> holds(size_t(kv.keys.shape[0] * kPageLen), -1);
  const auto place = [&](const Span& span, int64_t position) {
    return size_t(kv.page_of(span, position, kPageLen) * kPageLen + position % kPageLen);
  };
  for (int64_t step = 0; cache.length(id) < 1000; ++step) {
    const bool tentative = step % 2 == 1;
    const int64_t rows = tentative ? 5 : 1 + step * 7 % 30;
    const Span span =
        cache.extend(id, rows, tentative ? Cache::Rows::tentative : Cache::Rows::certain).value();
    EXPECT_EQ(place(span, span.start) / size_t(kv.ring_pages * kPageLen), 1u) << "its own slot";
    for (int64_t p = span.start; p < span.start + rows; ++p) holds[place(span, p)] = p;
    for (int64_t p = std::max<int64_t>(0, span.start - 99); p < span.start + rows; ++p)
      ASSERT_EQ(holds[place(span, p)], p) << "in a step at " << span.start;
    cache.commit(id, tentative ? step % 5 + 1 : rows);
  }
}

TEST(Cache, ForkCopiesRings) {
  Cache cache(kWindowSpecs, kSteps, {.sequences = 3, .pages = 8});
  ASSERT_TRUE(cache.open().ok());
  const SequenceId from = cache.open().value();
  ASSERT_TRUE(cache.extend(from, 7, Cache::Rows::certain).ok());
  cache.commit(from, 7);
  const KvPages& kv = cache.layer(0).kv;
  for (int64_t page = 0; page < kv.keys.shape[0]; ++page)
    for (const View& view : {kv.keys, kv.values}) fill(view, page, 1, int(page) + 1);
  const SequenceId to = cache.fork(from).value();
  for (int64_t page = 0; page < kv.keys.shape[0]; ++page) {
    const bool copied = page / kv.ring_pages == int64_t(to);
    const int64_t original = copied ? page + (int64_t(from) - int64_t(to)) * kv.ring_pages : page;
    for (const View& view : {kv.keys, kv.values})
      EXPECT_TRUE(is_filled(view, page, 1, int(original) + 1)) << page;
  }
}

}  // namespace
}  // namespace slip
