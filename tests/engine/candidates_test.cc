// A token that is chosen from the best few of a row, as a GPU finds them, is the one that the whole
// row gives; and where it might not be, the row is asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "engine/generate.h"
#include "kernels/cpu/cpu_ops_impl.h"
#include "kernels/ref/ref_ops_impl.h"
#include "tests/engine/elsewhere.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

constexpr int64_t kWidth = 600;

class Allowed final : public Constraint {
 public:
  template <class Allows>
  explicit Allowed(Allows allows) : set_(kWidth) {
    for (int32_t id = 0; id < kWidth; ++id)
      if (allows(id)) set_.add(id);
  }
  bool allows(int32_t id) override { return set_.contains(id); }
  const TokenSet& allowed() override { return set_; }
  void advance(int32_t) override {}
  std::unique_ptr<Constraint> clone() const override { return std::make_unique<Allowed>(*this); }

 private:
  TokenSet set_;
};

// The same rows on the host, where there are no candidates, and elsewhere.
class CandidatesSampling : public ::testing::Test {
 protected:
  void put(std::span<const float> values) {
    for (const auto& [ops, logits] : {std::pair<Ops*, Logits*>{&here_, &row_here_},
                                      std::pair<Ops*, Logits*>{&there_, &row_there_}}) {
      ops->memory().upload(logits->view(1).data, values.data(), values.size_bytes());
      ops->peaks({.x = logits->view(1), .out = logits->peaks(1)});
      logits->changed(1);
    }
  }
  LogitRow here() { return {row_here_, 0}; }
  LogitRow there() { return {row_there_, 0}; }

  // Two samplers that see the same.
  struct Pair {
    Pair(const SamplingOptions& options, int64_t usable, std::span<const int32_t> prompt)
        : here(options, kWidth, usable), there(options, kWidth, usable) {
      here.see_prompt(prompt);
      there.see_prompt(prompt);
    }
    Sampler here, there;
  };

  // Both choose the same from this row. Returns whether the row was asked for.
  bool choose(Pair& pair, std::span<const float> values, const TokenFilter& filter = {}) {
    const int64_t before = there_.downloads();
    put(values);
    const Sampler::Proposal drafted = pair.there.propose(there(), 2);
    put(values);
    const Sampler::Proposal expected = pair.here.propose(here(), 2);
    EXPECT_EQ(drafted.id, expected.id);
    EXPECT_EQ(drafted.margin, expected.margin);
    put(values);
    EXPECT_EQ(pair.there.next(there(), filter), pair.here.next(here(), filter));
    return there_.downloads() > before;
  }
  bool asks(const SamplingOptions& options, std::span<const float> values,
            const TokenFilter& filter = {}, std::span<const int32_t> prompt = {}) {
    Pair pair(options, kWidth, prompt);
    return choose(pair, values, filter);
  }

  std::vector<float> random_row(double scale = 6) {
    std::vector<float> row(kWidth);
    for (float& value : row) value = float(double(integer(-1000000, 1000000)) * scale * 1e-6);
    return row;
  }
  // Both included; the same on every machine.
  int64_t integer(int64_t low, int64_t high) {
    return low + int64_t(random_() % uint64_t(high - low + 1));
  }
  // The ids of a row, the best first.
  static std::vector<int32_t> ranked(const std::vector<float>& row) {
    std::vector<int32_t> ids(row.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t(i);
    std::ranges::stable_sort(ids, std::greater<>(), [&](int32_t id) { return row[size_t(id)]; });
    return ids;
  }

  RefOps here_;
  Elsewhere<RefOps> there_;
  Logits row_here_{here_, 1, kWidth}, row_there_{there_, 1, kWidth};
  std::mt19937_64 random_{1};
};

TEST_F(CandidatesSampling, ThereAreNoneWhereTheRowIsAtHand) {
  put(random_row());
  EXPECT_FALSE(here().candidates());
  ASSERT_TRUE(there().candidates());
  EXPECT_EQ(there().candidates()->front().id, there().peak().id);
}

TEST_F(CandidatesSampling, EveryChoiceIsThatOfTheWholeRow) {
  const float inf = INFINITY;
  const std::vector<std::pair<int32_t, float>> biases[] = {
      {}, {{3, -2.0f}, {3, -1.0f}, {7, -100.0f}, {9999, -5.0f}}, {{5, 4.0f}}, {{8, -inf}, {-1, 1}}};
  struct Penalties {
    float repetition, presence, frequency;
  };
  constexpr Penalties kPenalties[] = {{1, 0, 0},     {1.2f, 0, 0},     {1, 0.5f, 0.1f},
                                      {4, 1.5f, 2},  {0.9f, 0, 0},     {1, -0.5f, 0},
                                      {1, 0, -0.1f}, {INFINITY, 0, 0}, {1, INFINITY, 0}};
  std::vector<int32_t> prompt;
  for (int32_t id = 0; id < kWidth; id += 3) prompt.push_back(id);
  const auto next_row = [&](int turn) {
    std::vector<float> row = random_row(turn % 5 == 4 ? 0.01 : 6);
    for (float& value : row) {
      if (turn % 7 == 1) value = float(integer(-4, 4));
      if (turn % 7 == 2 && integer(0, 3) > 0) value = -INFINITY;
      if (turn % 7 == 3 && integer(0, 9) > 0) value = NAN;
      if (turn % 7 == 5) value = value > 0 ? 0.0f : -0.0f;
    }
    return row;
  };
  SamplingOptions options;
  int64_t chosen = 0, asked = 0;
  for (const int top_k : {1, 2, 20, 64, 127, 128, 129, 0})
    for (const float temperature : {0.0f, 1.0f})
      for (const Penalties& penalties : kPenalties)
        for (const auto& bias : biases) {
          options.top_k = top_k;
          options.temperature = temperature;
          options.top_p = chosen % 2 == 0 ? 1.0f : 0.9f;
          options.min_p = chosen % 3 == 0 ? 0.02f : 0.0f;
          options.repetition_penalty = penalties.repetition;
          options.presence_penalty = penalties.presence;
          options.frequency_penalty = penalties.frequency;
          options.logit_bias = bias;
          options.seed = uint64_t(chosen);
          Pair pair(options, chosen % 2 == 0 ? kWidth : kWidth - 57, prompt);
          for (int turn = 0; turn < 14; ++turn, ++chosen)
            asked += choose(pair, next_row(turn)) ? 1 : 0;
          ASSERT_FALSE(HasFailure()) << "top_k " << top_k << ", temperature " << temperature
                                     << ", repetition " << penalties.repetition << ", presence "
                                     << penalties.presence << ", choices " << chosen;
        }
  EXPECT_GT(chosen, 8000);
  EXPECT_GT(asked, chosen / 4) << "what cannot be certain was covered";
  EXPECT_LT(asked, chosen * 3 / 4) << "and what can";
}

TEST_F(CandidatesSampling, SeedsDrawTheSame) {
  const std::vector<float> row = random_row();
  std::set<int32_t> drawn;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    const SamplingOptions options{.temperature = 1.5f, .top_k = 20, .top_p = 0.95f, .seed = seed};
    Sampler sampler(options, kWidth, kWidth), other(options, kWidth, kWidth);
    put(row);
    const int32_t id = sampler.next(there());
    ASSERT_EQ(id, other.next(here())) << seed;
    drawn.insert(id);
  }
  EXPECT_GT(drawn.size(), 10u);
  EXPECT_EQ(there_.downloads(), 0);
}

TEST_F(CandidatesSampling, PublishedOptionsNeverAskForTheRow) {
  const std::vector<int32_t> prompt = {1, 5, 9, 13};
  for (const int top_k : {20, 64}) {
    for (const float presence : {0.0f, 1.5f}) {
      Pair pair({.top_k = top_k, .top_p = 0.95f, .presence_penalty = presence}, kWidth, prompt);
      for (int turn = 0; turn < 50; ++turn) EXPECT_FALSE(choose(pair, random_row()));
    }
  }
  EXPECT_FALSE(asks({.temperature = 0, .repetition_penalty = 1.1f}, random_row(), {}, prompt));
}

TEST_F(CandidatesSampling, WhatRaisesALogitNeedsTheRow) {
  const std::vector<float> row = random_row();
  EXPECT_FALSE(asks({.top_k = 20, .logit_bias = {{4, -1.0f}}}, row));
  EXPECT_TRUE(asks({.top_k = 20, .logit_bias = {{4, 1.0f}}}, row));
  EXPECT_TRUE(asks({.top_k = 20, .logit_bias = {{4, NAN}}}, row));
  EXPECT_TRUE(asks({.top_k = 20, .repetition_penalty = 0.9f}, row));
  EXPECT_TRUE(asks({.top_k = 20, .presence_penalty = -0.1f}, row));
  EXPECT_TRUE(asks({.top_k = 20, .frequency_penalty = -0.1f}, row));
}

TEST_F(CandidatesSampling, AsManyAsThereAreAndNoMore) {
  const std::vector<float> row = random_row();
  EXPECT_FALSE(asks({.top_k = int(kCandidates)}, row));
  EXPECT_TRUE(asks({.top_k = int(kCandidates) + 1}, row));
  EXPECT_TRUE(asks({.top_k = 0}, row));
  EXPECT_FALSE(asks({.top_k = int(kCandidates)}, std::vector<float>(kWidth, 1.0f)))
      << "equal ones come in the order of their ids";
  // One that falls below the last leaves a place to others.
  const std::vector<std::pair<int32_t, float>> lowered = {{ranked(row)[5], -100.0f}};
  EXPECT_TRUE(asks({.top_k = int(kCandidates), .logit_bias = lowered}, row));
  EXPECT_FALSE(asks({.top_k = int(kCandidates) - 1, .logit_bias = lowered}, row));
}

TEST_F(CandidatesSampling, PenaltiesThatLeaveTooFewNeedTheRow) {
  const std::vector<float> row = random_row();
  const std::vector<int32_t> ids = ranked(row);
  const auto asks_with = [&](size_t seen) {
    return asks({.top_k = 20, .repetition_penalty = 100}, row, {}, std::span(ids).first(seen));
  };
  EXPECT_FALSE(asks_with(size_t(kCandidates) - 20));
  EXPECT_TRUE(asks_with(size_t(kCandidates) - 19));
}

TEST_F(CandidatesSampling, PaddingThatTakesTheirPlacesNeedsTheRow) {
  std::vector<float> row = random_row();
  for (const int64_t padding : {kCandidates - 20, kCandidates - 19}) {
    for (int64_t i = kWidth - padding; i < kWidth; ++i) row[size_t(i)] = 50;
    Pair pair({.top_k = 20}, kWidth - padding, {});
    EXPECT_EQ(choose(pair, row), padding > kCandidates - 20);
  }
}

TEST_F(CandidatesSampling, AFilterThatLeavesTooFewNeedsTheRow) {
  const std::vector<float> row = random_row();
  const std::vector<int32_t> ids = ranked(row);
  const std::span<const int32_t> best = std::span(ids).first(30);
  for (const float temperature : {0.0f, 1.0f}) {
    const SamplingOptions options{.temperature = temperature, .top_k = 20};
    Allowed even([](int32_t id) { return id % 2 == 0; });
    EXPECT_FALSE(asks(options, row, {.constraint = &even}));
    EXPECT_FALSE(asks(options, row, {.banned = best}));
    EXPECT_FALSE(asks(options, row, {.constraint = &even, .banned = best}));
    Allowed worst([&](int32_t id) { return id == ids[500] || id == ids[501]; });
    EXPECT_TRUE(asks(options, row, {.constraint = &worst}));
    // The constraint leaves nothing but what is banned, which therefore stays.
    Allowed only_banned([&](int32_t id) { return id == best[2]; });
    EXPECT_TRUE(asks(options, row, {.constraint = &only_banned, .banned = best}));
  }
}

// As where a form wants what generation_config.json suppresses, or a model is damaged.
TEST_F(CandidatesSampling, WhatAFormLeavesComesHoweverUnlikely) {
  Allowed form([](int32_t id) { return id == 22 || id == 30; });
  const std::pair<int32_t, float> first{22, -INFINITY}, second{30, -INFINITY};
  for (const float temperature : {0.0f, 1.0f}) {
    for (const std::vector<float>& row : {random_row(), std::vector<float>(kWidth, NAN)}) {
      Sampler sampler({.temperature = temperature, .logit_bias = {first, second}}, kWidth, kWidth);
      for (const LogitRow& logits : {here(), there()}) {
        put(row);
        EXPECT_TRUE(form.allows(sampler.next(logits, {.constraint = &form})));
      }
    }
    std::vector<float> row = random_row();
    row[30] = -1000;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      put(row);
      Sampler sampler({.temperature = temperature, .logit_bias = {first}, .seed = seed}, kWidth,
                      kWidth);
      EXPECT_EQ(sampler.next(here(), {.constraint = &form}), 30) << "the other one is suppressed";
    }
  }
}

// On minnow, with whole answers.
class CandidatesEngine : public ::testing::TestWithParam<Backend> {
 protected:
  static constexpr int kTokens = 60;

  static GenerateRequest request(const SamplingOptions& sampling) {
    GenerateRequest made;
    made.prompt = prompt_ids("story");
    made.max_tokens = kTokens;
    made.sampling = sampling;
    return made;
  }
  // What full rows give, token by token.
  std::vector<int32_t> from_rows(LoadedModel& model, const GenerateRequest& made) const {
    const int64_t vocabulary = model.engine().model().info().vocabulary;
    Sampler sampler(made.sampling, vocabulary, tokenizer_.vocab_size());
    sampler.see_prompt(made.prompt);
    Session session(model.engine());
    EXPECT_TRUE(session.feed(made.prompt).ok());
    std::vector<int32_t> ids = {sampler.next(session.logits())};
    while (int(ids.size()) < kTokens) {
      EXPECT_TRUE(session.feed({&ids.back(), 1}).ok());
      ids.push_back(sampler.next(session.logits()));
    }
    return ids;
  }
  static int64_t downloads(LoadedModel& model) {
    const auto* memory = dynamic_cast<const FarMemory*>(&model.memory());
    return memory ? memory->downloads() : 0;
  }

  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
};

TEST_P(CandidatesEngine, ASampledAnswerIsThatOfWholeRows) {
  for (const int64_t shortlist : {0, 700}) {
    LoadedModel model(minnow_folder(), GetParam(),
                      {.context = 256, .max_drafts = 3, .weights = {.draft_shortlist = shortlist}});
    for (const uint64_t seed : {1, 2, 3}) {
      for (const float presence : {0.0f, 0.7f}) {
        GenerateRequest made = request({.top_k = 20, .presence_penalty = presence, .seed = seed});
        const std::vector<int32_t> right = from_rows(model, made);
        const int64_t before = downloads(model);
        Session session(model.engine());
        EXPECT_EQ(generate(session, &tokenizer_, made, {}).value().ids, right);
        EXPECT_TRUE(session.choice().candidates());
        session.clear();
        SoloDrafting drafting(DraftLength::fixed(3));
        made.drafts = &drafting;
        const GenerateResult drafted = generate(session, &tokenizer_, made, {}).value();
        EXPECT_EQ(drafted.ids, right) << "with drafts";
        EXPECT_GT(drafted.drafts.accepted, 0);
        EXPECT_EQ(downloads(model), before) << "a row was asked for";
      }
    }
  }
}

TEST_P(CandidatesEngine, DraftsAreThoseOfWholeRows) {
  LoadedModel model(minnow_folder(), GetParam(),
                    {.context = 256, .max_drafts = 3, .weights = {.draft_shortlist = 700}});
  Session session(model.engine());
  ASSERT_TRUE(session.feed(prompt_ids("story")).ok());
  Sampler sampler({.top_k = 20, .repetition_penalty = 1.2f, .seed = 5},
                  model.engine().model().info().vocabulary, tokenizer_.vocab_size());
  sampler.see_prompt(session.tokens());
  std::vector<int32_t> ids = {argmax(session.logits())};
  for (int64_t ahead = 0; ahead < 3; ++ahead) {
    const LogitRow row = session.draft(ids).value();
    const Sampler::Proposal found = sampler.propose(row, ahead);
    const Sampler::Proposal right = sampler.propose(row.values(), ahead);
    EXPECT_EQ(found.id, right.id);
    EXPECT_EQ(found.margin, right.margin);
    ids.push_back(right.id);
  }
}

std::vector<Backend> elsewhere_backends() {
  std::vector<Backend> backends = {{"elsewhere", [](ThreadPool& pool) -> std::unique_ptr<Ops> {
                                      return std::make_unique<Elsewhere<CpuOps>>(
                                          pool, loops_for(available_isas().front(), 2));
                                    }}};
  if (const Backend last = fast_backends().back(); last.name == "cuda") backends.push_back(last);
  return backends;
}
INSTANTIATE_TEST_SUITE_P(Backends, CandidatesEngine, ::testing::ValuesIn(elsewhere_backends()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace slip
