// Drafts along a text are those that the engine makes, and are counted as the goldens count them.
#include <gtest/gtest.h>

#include <map>

#include "models/model_source.h"
#include "slipstream/eval/drafts.h"
#include "slipstream/eval/eval.h"
#include "slipstream/eval/stats.h"
#include "tests/checkpoint/test_files.h"
#include "tests/engine/agreeing_gemma.h"
#include "tests/golden/golden_file.h"

namespace slip {
namespace {

struct Loaded {
  Backend backend;
  std::unique_ptr<Engine> engine;
};

Loaded load_folder(const std::filesystem::path& folder, const ModelFlags& flags,
                   const SpeculateFlags& speculation) {
  Loaded loaded{make_backend(flags).value(), nullptr};
  EngineOptions options;
  options.memory = memory_request(flags).value();
  options.memory.context = 512;
  options.max_rows = options.logit_rows = 64;
  speculation.apply(options);
  loaded.engine = Engine::load(ModelSource::open(folder).value(), options, *loaded.backend.ops,
                               *loaded.backend.pool, {})
                      .value();
  return loaded;
}

Loaded load_minnow(const ModelFlags& flags, const SpeculateFlags& speculation) {
  return load_folder(minnow_folder(), flags, speculation);
}

// By slot and place: the draft and its logit.
using Drafts = std::map<std::pair<int64_t, int64_t>, std::pair<int32_t, float>>;

// Go on while drafts are the text, three in a row at most.
std::optional<int32_t> following(std::span<const int32_t> ids, int64_t slot, int64_t place,
                                 int32_t draft) {
  const auto token = size_t(slot + place + 2);
  if (place == 2 || token >= ids.size() || draft != ids[token]) return std::nullopt;
  return draft;
}

Drafts along_the_text(Engine& engine, std::span<const int32_t> ids) {
  Session session(engine);
  const std::vector<float> hidden =
      feed_for_drafts(session, ids, [](int64_t, std::span<const float>) {}).value();
  Drafts found;
  TextDrafts drafts(session);
  drafts.run(ids, hidden, [&](int64_t slot, int64_t place, std::span<const float> logits) {
    const int32_t draft = drafts.best(logits);
    found[{slot, place}] = {draft, logits[size_t(best_token(logits))]};
    return following(ids, slot, place, draft);
  });
  return found;
}

// Token by token, as when decoding.
Drafts of_the_engine(Engine& engine, std::span<const int32_t> ids) {
  Session session(engine);
  Drafts found;
  for (int64_t slot = 0; slot + 1 < int64_t(ids.size()); ++slot) {
    EXPECT_TRUE(session.feed(ids.subspan(size_t(slot), 1)).ok());
    for (int64_t place = 0;; ++place) {
      const auto behind = ids.subspan(size_t(slot) + 1, size_t(place) + 1);
      const std::span<float> logits = session.draft(behind)->values();
      const int32_t draft = best_token(logits);
      found[{slot, place}] = {draft, logits[size_t(draft)]};
      if (!following(ids, slot, place, draft)) break;
    }
  }
  return found;
}

class TextDraftsTest : public ::testing::TestWithParam<std::tuple<std::string, int64_t>> {};

TEST_P(TextDraftsTest, AreThoseOfTheEngine) {
  ModelFlags flags;
  flags.kv_cache = std::get<0>(GetParam());
  SpeculateFlags speculation;
  speculation.shortlist = std::get<1>(GetParam());
  const Loaded loaded = load_minnow(flags, speculation);
  // Over three pages of the cache and a bit.
  const std::vector<int32_t> all =
      GoldenFile(golden_folder() / "minnow/samples.safetensors").ints("chat");
  const auto ids = std::span(all).first(201);
  const Drafts found = along_the_text(*loaded.engine, ids);
  const Drafts expected = of_the_engine(*loaded.engine, ids);
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_GT(found.size(), 2 * ids.size()) << "not many drafts in a row";
  for (const auto& [where, draft] : expected) {
    EXPECT_EQ(found.at(where).first, draft.first) << where.first << " " << where.second;
    EXPECT_EQ(found.at(where).second, draft.second) << where.first << " " << where.second;
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, TextDraftsTest,
                         ::testing::Values(std::tuple("f32", 0), std::tuple("bf16", 1024),
                                           std::tuple("k4v4", 0), std::tuple("k8v3", 0)));

// What the reference program drafts and chooses for a prompt, counted here.
std::vector<DraftAgreement> golden_agreement(const std::string& prompt,
                                             std::span<const int32_t> ids) {
  const GoldenFile golden(golden_folder() / "minnow/weights_int4.safetensors");
  const auto best = [&](const std::string& name) {
    const std::vector<int32_t> top = golden.ints(prompt + name);
    const auto width = size_t(golden.shape(prompt + name)[1]);
    std::vector<int32_t> first;
    for (size_t i = 0; i < top.size(); i += width) first.push_back(top[i]);
    return first;
  };
  const std::vector<int32_t> chosen = best(".top_ids"), draft1 = best(".mtp1_top_ids"),
                             draft2 = best(".mtp2_top_ids");
  std::vector<DraftAgreement> places(2);
  for (size_t p = 0; p + 1 < ids.size(); ++p) {
    ++places[0].judged;
    places[0].agreed += draft1[p] == chosen[p + 1];
    if (p + 2 >= ids.size() || draft1[p] != ids[p + 2]) continue;
    ++places[1].judged;
    places[1].agreed += draft2[p] == chosen[p + 2];
  }
  return places;
}

TEST(JudgeDrafts, CountsAsTheGoldensDo) {
  ModelFlags flags;
  flags.ops = "ref";
  SpeculateFlags speculation;
  speculation.drafter = "keep";
  const Loaded loaded = load_minnow(flags, speculation);
  for (const std::string prompt : {"story", "tool_call"}) {
    // The reference is slow, and goldens have no draft that only the last token would allow.
    const std::vector<int32_t> all = prompt_ids(prompt);
    const auto ids = std::span(all).first(std::min<size_t>(all.size() - 1, 48));
    std::vector<DraftAgreement> found(2);
    Session session(*loaded.engine);
    ASSERT_TRUE(judge_drafts(session, ids, found).ok());
    const std::vector<DraftAgreement> expected = golden_agreement(prompt, ids);
    EXPECT_GT(expected[1].judged, 0) << prompt;
    for (size_t place = 0; place < 2; ++place) {
      EXPECT_EQ(found[place].judged, expected[place].judged) << prompt << " " << place;
      EXPECT_EQ(found[place].agreed, expected[place].agreed) << prompt << " " << place;
    }
  }
}

// Its window of 48 positions has moved on when the text is over.
TEST(JudgeDrafts, OfADrafterThatReadsTheModelsKeys) {
  const TempFolder folder;
  write_agreeing_gemma(folder.path() / "model", kAgreeingInSmall);
  const Loaded loaded = load_folder(folder.path() / "model", {}, {});
  Session session(*loaded.engine);
  std::vector<int32_t> ids{3, 1, 4, 1, 5};
  ASSERT_TRUE(session.feed(ids).ok());
  while (ids.size() < 150) {
    ids.push_back(best_token(session.logits()));
    ASSERT_TRUE(session.feed(std::span(ids).last(1)).ok());
  }
  std::vector<DraftAgreement> places(3);
  ASSERT_TRUE(judge_drafts(session, ids, places).ok());
  EXPECT_EQ(places[0].judged, 149);
  for (const DraftAgreement& place : places) {
    EXPECT_GT(place.judged, 100);
    EXPECT_GT(place.share(), 0.85);
  }
}

TEST(TokensPerStep, CountsTheModelsOwnToken) {
  EXPECT_EQ(tokens_per_step({}), 1);
  const std::vector<DraftAgreement> places{{.judged = 10, .agreed = 8}, {.judged = 4, .agreed = 2}};
  EXPECT_DOUBLE_EQ(tokens_per_step(places), 1 + 0.8 + 0.8 * 0.5);
  const std::vector<DraftAgreement> never{{}, {.judged = 1, .agreed = 1}};
  EXPECT_EQ(tokens_per_step(never), 1);
}

}  // namespace
}  // namespace slip
