// Drafts among a shortlist of tokens: on every backend, the best of them, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/generate.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

constexpr int64_t kTokens = 700;

class Shortlist : public ::testing::TestWithParam<Backend> {
 protected:
  LoadedModel model_{minnow_folder(),
                     GetParam(),
                     {.context = 256, .max_drafts = 3, .weights = {.draft_shortlist = kTokens}}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
};

TEST_P(Shortlist, APeakIsThatOfTheWholeRow) {
  Session session(model_.engine());
  ASSERT_TRUE(session.feed(prompt_ids("story")).ok());
  std::vector<int32_t> ids = {argmax(session.logits())};
  for (int draft = 0; draft < 3; ++draft) {
    const LogitRow row = session.draft(ids).value();
    const Peak peak = row.peak();
    const std::span<const float> values = row.values();
    ASSERT_EQ(int64_t(values.size()), model_.engine().model().info().vocabulary);
    EXPECT_EQ(std::ranges::count_if(values, [](float x) { return x > -INFINITY; }), kTokens);
    ids.push_back(argmax(values));
    EXPECT_EQ(peak.id, ids.back()) << "draft " << draft;
    EXPECT_EQ(peak.value, values[size_t(ids.back())]);
  }
}

TEST_P(Shortlist, ChangesNoText) {
  GenerateRequest request;
  request.prompt = prompt_ids("story");
  request.max_tokens = 60;
  for (const float temperature : {0.0f, 1.0f}) {
    request.sampling.temperature = temperature;
    request.sampling.seed = 7;
    SoloDrafting drafting(DraftLength::fixed(3));
    Session plain(model_.engine());
    request.drafts = nullptr;
    const std::vector<int32_t> right = generate(plain, &tokenizer_, request, {}).value().ids;
    plain.clear();
    request.drafts = &drafting;
    const GenerateResult drafted = generate(plain, &tokenizer_, request, {}).value();
    EXPECT_EQ(drafted.ids, right) << "temperature " << temperature;
    EXPECT_GT(drafted.drafts.accepted, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Shortlist, ::testing::ValuesIn(fast_backends()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace slip
