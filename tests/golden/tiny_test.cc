// Random checkpoints of a megabyte, with 16-bit weights: every backend is a float32 engine here, so
// every logit must be right.
#include <tuple>

#include "tests/golden/compare.h"
#include "tests/golden/tiny_folder.h"

namespace slip {
namespace {

class TinyGolden : public ::testing::TestWithParam<std::tuple<std::string, Backend>> {
 protected:
  void SetUp() override {
    if (!has_tiny(std::get<0>(GetParam()))) GTEST_SKIP() << kTinyAbsent;
  }
  std::filesystem::path folder() const { return tiny_folder(std::get<0>(GetParam())); }
  const Backend& backend() const { return std::get<1>(GetParam()); }
};

TEST_P(TinyGolden, LogitsOfEveryPosition) {
  LoadedModel model(folder(), backend(), {.max_rows = 64});
  const GoldenFile golden(folder() / "golden.safetensors");
  for (const std::string name : {"short", "long"}) {
    const LogitRows found = model.logits(golden.ints(name + ".ids"));
    EXPECT_LE(largest_difference(found.values, golden.floats(name + ".logits")), 5e-3) << name;
  }
}

TEST_P(TinyGolden, LogitsFarIntoAText) {
  LoadedModel model(folder(), backend(), {.max_rows = 100});
  const GoldenFile golden(folder() / "golden.safetensors");
  const LogitRows found = model.logits(golden.ints("far.ids"));
  const std::vector<int32_t> rows = golden.ints("far.rows");
  const std::vector<float> expected = golden.floats("far.logits");
  const auto vocabulary = size_t(found.vocabulary);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<const float> wanted(expected.data() + i * vocabulary, vocabulary);
    EXPECT_LE(largest_difference(found.row(rows[i]), wanted), 2e-2) << "position " << rows[i];
  }
}

TEST_P(TinyGolden, GreedyContinuation) {
  LoadedModel model(folder(), backend());
  const GoldenFile golden(folder() / "golden.safetensors");
  for (const std::string name : {"short", "long"})
    EXPECT_EQ(model.greedy(golden.ints(name + ".ids"), 32), golden.ints(name + ".greedy_ids"))
        << name;
}

INSTANTIATE_TEST_SUITE_P(
    Families, TinyGolden,
    ::testing::Combine(::testing::Values("qwen3_5_dense", "qwen3_5_moe", "qwen3_5_moe_split",
                                         "gemma4_e", "gemma4_31b", "gemma4_26b"),
                       ::testing::ValuesIn(all_backends())),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

}  // namespace
}  // namespace slip
