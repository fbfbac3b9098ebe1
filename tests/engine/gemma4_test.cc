// A small Gemma 4 and its drafter in the engine: windows that have wrapped, keys that layers share,
// drafts that read them. Everything must be as if computed token by token.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/generate.h"
#include "tests/engine/service_harness.h"
#include "tests/golden/tiny_folder.h"

namespace slip {
namespace {

constexpr int64_t kDrafts = 4;

LoadedOptions options_of(const std::string& recipe, int64_t drafts) {
  LoadedOptions options{.context = 512, .max_rows = 64, .max_drafts = drafts};
  options.kv = parse_kv_recipe(recipe).value();
  if (drafts > 0) options.drafter = tiny_folder("gemma4_e_assistant");
  return options;
}

std::vector<int32_t> long_prompt() {
  return GoldenFile(tiny_folder("gemma4_e") / "golden.safetensors").ints("long.ids");
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class Gemma4Engine : public ::testing::TestWithParam<std::tuple<Backend, std::string>> {
 protected:
  const Backend& backend() const { return std::get<0>(GetParam()); }
  LoadedModel load(int64_t drafts = kDrafts) const {
    return LoadedModel(tiny_folder("gemma4_e"), backend(),
                       options_of(std::get<1>(GetParam()), drafts));
  }
};

// The windows are of 24 positions, rings and pages of 64: every place of each is met several times.
TEST_P(Gemma4Engine, RejectedTokensLeaveNoTrace) {
  LoadedModel model = load();
  std::vector<int32_t> ids = long_prompt();
  const size_t prompt = 14;  // the rest is treated as if the model had said it
  std::vector<std::vector<float>> logits;
  {
    Session session(model.engine());
    const auto add = [&](int32_t id) {
      ASSERT_TRUE(session.feed({&id, 1}).ok());
      logits.emplace_back(session.logits().begin(), session.logits().end());
    };
    for (const int32_t id : ids) add(id);
    while (ids.size() < 300) {
      ids.push_back(argmax(logits.back()));
      add(ids.back());
    }
  }
  for (int64_t shift = 0; shift < kDrafts; ++shift) {
    Session session(model.engine());
    ASSERT_TRUE(session.feed(std::span(ids).first(prompt)).ok());
    ASSERT_TRUE(same_bits(session.logits(), logits[prompt - 1])) << "the prompt in one go";
    int64_t step = shift;
    for (size_t done = prompt; done < ids.size();) {
      const int64_t right = step % (kDrafts + 1), drafts = 1 + (step / 3) % kDrafts;
      ++step;
      std::vector<int32_t> tried;
      for (int64_t i = 0; i <= drafts && done + size_t(i) < ids.size(); ++i) {
        const int32_t truth = ids[done + size_t(i)];
        tried.push_back(i <= right ? truth : (truth + 1 + int32_t(i)) % 384);
      }
      ASSERT_TRUE(session.verify(tried).ok());
      const int64_t accepted = std::min(right + 1, int64_t(tried.size()));
      for (int64_t row = 0; row < accepted; ++row)
        ASSERT_TRUE(same_bits(session.choice(row).values(), logits[done + size_t(row)]))
            << "position " << done + size_t(row) << ", step of " << tried.size();
      session.accept(accepted);
      done += size_t(accepted);
    }
  }
}

// Layers that share keys are computed for the last row of a prompt alone. The golden tests ask for
// the logits of all rows, which need all of them.
TEST_P(Gemma4Engine, APromptWithOneOutputIsThatWithAll) {
  LoadedModel model = load(0);
  const std::vector<int32_t> ids = long_prompt();
  for (const size_t length : {1, 2, 63, 64, 65, 128, 129, 177}) {
    const auto text = std::span(ids).first(length);
    const LogitRows all = model.logits(text);
    Session session(model.engine());
    ASSERT_TRUE(session.feed(text).ok());
    const std::span<const float> expected = all.row(int64_t(length) - 1);
    if (int64_t(length) <= backend().invariant_rows) {
      EXPECT_TRUE(same_bits(session.logits(), expected)) << length;
      continue;
    }
    // One row goes another way through a GPU than many.
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::fabs(double(session.logits()[i]) - double(expected[i])));
    EXPECT_LT(worst, std::get<1>(GetParam()) == "f32" ? 5e-3 : 0.5) << length;
  }
}

TEST_P(Gemma4Engine, DraftsChangeNothing) {
  LoadedModel model = load();
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  GenerateRequest request;
  request.prompt = long_prompt();
  request.max_tokens = 120;
  const auto run = [&](const std::optional<DraftLength>& drafts) {
    Session session(model.engine());
    std::optional<SoloDrafting> drafting(drafts);
    request.drafts = drafting ? &*drafting : nullptr;
    return generate(session, &tokenizer, request, {}).value();
  };
  for (const uint64_t seed : {0, 1, 2}) {
    request.sampling.temperature = seed == 0 ? 0 : 0.8f;
    request.sampling.seed = seed;
    const GenerateResult plain = run(std::nullopt);
    for (const int64_t drafts : {1, 2, 4}) {
      const GenerateResult drafted = run(DraftLength::fixed(drafts));
      EXPECT_EQ(drafted.ids, plain.ids) << "seed " << seed << ", " << drafts << " drafts";
      EXPECT_GE(drafted.drafts.drafted, 60) << "nothing was drafted";
    }
    EXPECT_EQ(run(DraftLength::automatic(kDrafts)).ids, plain.ids) << "seed " << seed;
  }
}

// Several sequences in a step, prefixes taken over from others: rings are copied with them.
TEST_P(Gemma4Engine, ServedTogetherAsAlone) {
  LoadedOptions options = options_of(std::get<1>(GetParam()), kDrafts);
  options.sequences = 3;
  options.checkpoints = 8;
  LoadedModel model(tiny_folder("gemma4_e"), backend(), options);
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  const std::vector<int32_t> ids = long_prompt();
  const auto asked = [&](size_t shared, int32_t own, bool reuse) {
    std::vector<int32_t> text(ids.begin(), ids.begin() + int64_t(shared));
    for (int32_t i = 0; i < 9; ++i) text.push_back((own * 31 + i * 7) % 384);
    Request request = sampled(text, 40, uint64_t(own));
    request.message_ends = {int64_t(shared)};
    request.reuse_prefix = reuse;
    return request;
  };
  std::vector<std::vector<int32_t>> alone;
  const size_t lengths[] = {30, 64, 150};
  {
    Service service(model.engine(), tokenizer, {.max_drafts = 0});
    for (int32_t i = 0; i < 6; ++i)
      alone.push_back(answer(service, asked(lengths[i % 3], i, false))->ids);
  }
  Service service(model.engine(), tokenizer, {.max_drafts = kDrafts, .always_draft = true});
  for (int round = 0; round < 2; ++round) {
    std::vector<Submitted> submitted;
    for (int32_t i = 0; i < 6; ++i)
      submitted.push_back(submit(service, asked(lengths[i % 3], i, true)));
    int64_t cached = 0;
    for (size_t i = 0; i < submitted.size(); ++i) {
      submitted[i].listener->wait();
      EXPECT_EQ(submitted[i].listener->ids, alone[i]) << "request " << i << ", round " << round;
      cached += submitted[i].listener->summary.cached_tokens;
    }
    if (round == 1) {
      EXPECT_GT(cached, 300) << "prefixes were forgotten";
    }
  }
}

// A prompt that is computed or taken over up to its last token has nothing to draft from yet.
TEST_P(Gemma4Engine, NothingIsDraftedFromRowsThatWereNotComputed) {
  LoadedOptions options = options_of(std::get<1>(GetParam()), kDrafts);
  options.sequences = 2;
  options.checkpoints = 2;
  LoadedModel model(tiny_folder("gemma4_e"), backend(), options);
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  Service service(model.engine(), tokenizer, {.max_drafts = kDrafts, .always_draft = true});
  const auto ask = [&](bool in_pieces) {
    Request request = greedy(long_prompt(), 6);
    request.prompt.resize(12);
    request.reuse_prefix = in_pieces;
    if (in_pieces) request.message_ends = {11};
    return answer(service, std::move(request))->summary;
  };
  const RequestSummary whole = ask(false), cut = ask(true), hit = ask(true);
  EXPECT_EQ(hit.cached_tokens, 11);
  EXPECT_EQ(cut.drafts.made, whole.drafts.made);
  EXPECT_EQ(hit.drafts.made, whole.drafts.made);
}

INSTANTIATE_TEST_SUITE_P(Recipes, Gemma4Engine,
                         ::testing::Combine(::testing::ValuesIn(fast_backends()),
                                            ::testing::Values("f32", "bf16", "k4v4")),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param);
                         });

}  // namespace
}  // namespace slip
