// Drafters of Gemma 4 on the keys of their models: three drafts behind a prompt, at its last
// position.
#include <tuple>

#include "tests/golden/compare.h"
#include "tests/golden/tiny_folder.h"

namespace slip {
namespace {

struct Pair {
  std::string model, drafter;
};
std::ostream& operator<<(std::ostream& out, const Pair& pair) { return out << pair.drafter; }

class Gemma4Drafter : public ::testing::TestWithParam<std::tuple<Pair, Backend>> {
 protected:
  void SetUp() override {
    if (!has_tiny(pair().model) || !has_tiny(pair().drafter)) GTEST_SKIP() << kTinyAbsent;
  }
  const Pair& pair() const { return std::get<0>(GetParam()); }
  const Backend& backend() const { return std::get<1>(GetParam()); }
  LoadedModel load() const {
    return LoadedModel(tiny_folder(pair().model), backend(),
                       {.max_rows = 64, .max_drafts = 3, .drafter = tiny_folder(pair().drafter)});
  }
  GoldenFile golden() const {
    return GoldenFile(tiny_folder(pair().drafter) / "golden.safetensors");
  }
};

constexpr int64_t kDrafts = 3;

std::span<const float> row_of(const std::vector<float>& rows, int64_t row) {
  const size_t width = rows.size() / kDrafts;
  return {rows.data() + size_t(row) * width, width};
}

// As the engine drafts: the hidden state is its own, each draft follows the one before it.
TEST_P(Gemma4Drafter, DraftsOfASession) {
  LoadedModel model = load();
  const GoldenFile file = golden();
  for (const std::string name : {"short", "long"}) {
    Session session(model.engine());
    ASSERT_TRUE(session.feed(file.ints(name + ".ids")).ok());
    std::vector<int32_t> ids = {argmax(session.logits())};
    EXPECT_EQ(ids.back(), file.ints(name + ".pending")[0]);
    const std::vector<int32_t> tokens = file.ints(name + ".engine.tokens");
    const std::vector<float> logits = file.floats(name + ".engine.logits");
    for (int64_t i = 0; i < kDrafts; ++i) {
      const auto drafted = session.draft(ids);
      ASSERT_TRUE(drafted.has_value());
      EXPECT_LE(largest_difference(drafted->values(), row_of(logits, i)), 5e-3) << name << " " << i;
      ids.push_back(argmax(drafted->values()));
      EXPECT_EQ(ids.back(), tokens[size_t(i)]) << name << " " << i;
    }
  }
}

// One pass after the other, from the golden's hidden state: what a draft hands on is right too.
TEST_P(Gemma4Drafter, FeaturesOfEveryPass) {
  LoadedModel model = load();
  const GoldenFile file = golden();
  const ModelInfo& info = model.engine().model().info();
  Memory& memory = model.memory();
  const Tensor logits(memory, DType::f32, {1, info.vocabulary});
  const Tensor hidden(memory, DType::f32, {1, info.hidden});
  const Tensor passed(memory, DType::f32, {1, info.hidden});
  for (const std::string name : {"short", "long"}) {
    Session session(model.engine());
    const std::vector<int32_t> ids = file.ints(name + ".ids");
    ASSERT_TRUE(session.feed(ids).ok());
    const std::vector<float> state = file.floats(name + ".hidden");
    memory.upload(hidden.view.data, state.data(), state.size() * sizeof(float));
    const std::vector<int32_t> tokens = file.ints(name + ".engine.tokens");
    const std::vector<float> features = file.floats(name + ".engine.features");
    int32_t next = file.ints(name + ".pending")[0];
    for (int64_t i = 0; i < kDrafts; ++i) {
      model.draft_row({next, int64_t(ids.size()) - 1, hidden.view, logits.view, passed.view},
                      session);
      std::vector<float> found(size_t(info.hidden));
      memory.download(found.data(), passed.view.data, passed.view.bytes());
      EXPECT_LE(largest_difference(found, row_of(features, i)), 5e-3) << name << " " << i;
      memory.copy(hidden.view.data, passed.view.data, passed.view.bytes());
      next = tokens[size_t(i)];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gemma4, Gemma4Drafter,
    ::testing::Combine(::testing::Values(Pair{"gemma4_e", "gemma4_e_assistant"},
                                         Pair{"gemma4_e", "gemma4_e_assistant_dense"},
                                         Pair{"gemma4_31b", "gemma4_31b_assistant"},
                                         Pair{"gemma4_31b", "gemma4_31b_assistant_centroids"}),
                       ::testing::ValuesIn(all_backends())),
    [](const auto& test) {
      return std::get<0>(test.param).drafter + "_" + std::get<1>(test.param).name;
    });

}  // namespace
}  // namespace slip
