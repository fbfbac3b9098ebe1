// Many random conversations, greedy, with and without drafts: the same tokens, for every recipe of
// the cache.
#include <gtest/gtest.h>

#include <random>

#include "engine/generate.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

struct Case {
  std::string recipe;
  int conversations;
  Backend backend = cpu_backends().front();

  friend std::ostream& operator<<(std::ostream& out, const Case& each) {
    return out << each.conversations << " on " << each.backend << " with " << each.recipe;
  }
};

class Conversations : public ::testing::TestWithParam<Case> {
 protected:
  // Two turns of random pieces of text with an answer to each.
  std::vector<int32_t> talk(uint32_t seed, SoloDrafting* drafts) {
    std::mt19937 random(seed);
    Session session(model_.engine());
    std::vector<int32_t> text, said;
    for (int turn = 0; turn < 2; ++turn) {
      const std::vector<int32_t>& source = sources_[random() % sources_.size()];
      const size_t length = std::min<size_t>(source.size(), 6 + random() % 30);
      const size_t begin = random() % (source.size() - length + 1);
      text.insert(text.end(), source.begin() + int64_t(begin),
                  source.begin() + int64_t(begin + length));
      GenerateRequest request;
      request.prompt = text;
      request.sampling.temperature = 0;
      request.max_tokens = 4 + int64_t(random() % 12);
      request.drafts = drafts;
      Result<GenerateResult> result = generate(session, nullptr, request, {});
      EXPECT_TRUE(result.ok());
      if (drafts) drafted_ += result.value().drafts.drafted;
      if (drafts) accepted_ += result.value().drafts.accepted;
      const std::vector<int32_t>& ids = result.value().ids;
      text.insert(text.end(), ids.begin(), ids.end());
      said.insert(said.end(), ids.begin(), ids.end());
    }
    return said;
  }

  LoadedModel model_{minnow_folder(),
                     GetParam().backend,
                     {.context = 256,
                      .max_rows = 64,
                      .max_drafts = kMaxDrafts,
                      .kv = parse_kv_recipe(GetParam().recipe).value()}};
  std::vector<std::vector<int32_t>> sources_ = {prompt_ids("story"), prompt_ids("docs_page"),
                                                prompt_ids("tool_call"), prompt_ids("code"),
                                                prompt_ids("json")};
  int64_t drafted_ = 0, accepted_ = 0;
};

TEST_P(Conversations, AreTheSameWithDrafts) {
  SoloDrafting automatic(DraftLength::automatic(kMaxDrafts));
  for (int i = 0; i < GetParam().conversations; ++i) {
    const std::vector<int32_t> plain = talk(uint32_t(i), nullptr);
    SoloDrafting fixed(DraftLength::fixed(1 + i % kMaxDrafts));
    ASSERT_EQ(talk(uint32_t(i), i % 3 == 0 ? &automatic : &fixed), plain) << "conversation " << i;
  }
  EXPECT_GT(accepted_, GetParam().conversations);
  EXPECT_GT(drafted_, accepted_) << "nothing was ever rejected";
}

std::vector<Case> cases() {
  std::vector<Case> all = {{"f32", 1000}, {"k4v4", 100}, {"bf16", 25}, {"fp8", 25}, {"int8", 25},
                           {"k8v4", 25},  {"k4v3", 25},  {"k3v3", 25}, {"k3v2", 25}};
  for (const Backend& backend : fast_backends())
    if (backend.name == "cuda")
      for (const auto& [recipe, conversations] :
           {std::pair{"bf16", 1000}, std::pair{"k4v4", 200}, std::pair{"f32", 25},
            std::pair{"fp8", 25}, std::pair{"int8", 25}, std::pair{"k3v2", 25}})
        all.push_back({recipe, conversations, backend});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Recipes, Conversations, ::testing::ValuesIn(cases()),
                         [](const auto& each) {
                           const Case& test = each.param;
                           return test.backend.name == "cuda" ? "cuda_" + test.recipe : test.recipe;
                         });

}  // namespace
}  // namespace slip
