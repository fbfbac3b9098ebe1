// Bytes and products of a step, against the weights that the model placed.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/golden/golden_file.h"
#include "tests/models/drafting_model.h"

namespace slip {
namespace {

bool has(const PlacedWeight& weight, const char* part) {
  return weight.name.find(part) != std::string::npos;
}

// Bytes of weights whose names the test accepts, experts by the share that is read.
template <class Accept>
double placed_bytes(const Model& model, double experts, const Accept& accept) {
  double bytes = 0;
  for (const PlacedWeight& weight : model.placed_weights())
    if (accept(weight)) bytes += (has(weight, ".experts.") ? experts : 1) * double(weight.bytes);
  return bytes;
}

constexpr double kTableRow = 384 * 2;

TEST(StepCost, IsTheMainWeightsOnceAndTheExpertsInUse) {
  DraftingModel loaded(minnow_folder(), fast_backends().front());
  const Model& model = loaded.model();
  const auto in_step = [](const PlacedWeight& weight) {
    return !weight.drafts && !has(weight, "embed_tokens");
  };
  for (const int64_t rows : {1, 2, 3, 5, 1000}) {
    const double experts = 1 - std::pow(1 - 4.0 / 16, double(rows));
    const double expected = placed_bytes(model, experts, in_step) + double(rows) * kTableRow;
    EXPECT_NEAR(double(model.step_cost(rows, 0, {}).weight_bytes), expected, 1e-6 * expected)
        << rows << " rows";
  }
}

TEST(StepCost, CacheIsReadOnceAndMultipliedByEveryRow) {
  DraftingModel loaded(minnow_folder(), fast_backends().front());
  const Model& model = loaded.model();
  const KvRecipe f32{}, bf16{KvCodec::bf16, KvCodec::bf16};
  const StepCost one = model.step_cost(1, 1000, f32), four = model.step_cost(4, 1000, f32);
  // Two layers of two heads of 256 keys and values; six states of 4 x 128 x 128, in and out.
  const uint64_t state = 6 * 2 * 4 * 128 * 128 * 4;
  EXPECT_EQ(one.cache_bytes, 1000u * 2 * 2 * 2 * 256 * 4 + state);
  EXPECT_EQ(model.step_cost(1, 1000, bf16).cache_bytes, 1000u * 2 * 2 * 2 * 256 * 2 + state);
  EXPECT_EQ(four.cache_bytes, one.cache_bytes);
  EXPECT_NEAR(double(four.integer_products), 4 * double(one.integer_products), 4);
  EXPECT_NEAR(double(four.float_products), 4 * double(one.float_products), 4);
}

TEST(DraftCost, IsTheLayerAndWhatItScoresOfTheHead) {
  const auto in_draft = [](const PlacedWeight& weight) { return weight.drafts; };
  const auto head_bytes = [](const Model& model) {
    return placed_bytes(model, 1, [](const PlacedWeight& w) { return w.name == "lm_head"; });
  };
  DraftingModel whole(minnow_folder(), fast_backends().front());
  DraftingModel some(minnow_folder(), fast_backends().front(),
                     {.drafter = WeightFormat::int8_row, .draft_shortlist = 1024});
  const double experts = 4.0 / 16;
  const double expected_whole =
      placed_bytes(whole.model(), experts, in_draft) + head_bytes(whole.model()) + kTableRow;
  const double expected_some = placed_bytes(some.model(), experts, in_draft) + kTableRow;
  EXPECT_NEAR(double(whole.model().drafter()->cost(0, {}).weight_bytes), expected_whole, 64);
  EXPECT_NEAR(double(some.model().drafter()->cost(0, {}).weight_bytes), expected_some, 64);
  EXPECT_LT(expected_some, 0.3 * expected_whole);
  EXPECT_EQ(whole.model().drafter()->cost(0, {}).integer_products, 0u);
  EXPECT_GT(some.model().drafter()->cost(0, {}).integer_products, 1024u * 384);
  EXPECT_EQ(whole.model().drafter()->cost(100, {}).cache_bytes, 100u * 2 * 2 * 256 * 4);
}

// A tied table is looked up and, as the head, read as a whole.
TEST(StepCost, OfATiedHead) {
  const auto folder = golden_folder() / "tiny/qwen3_5_dense";
  DraftingModel tied(folder, ref_backend()), made(folder, ref_backend(), {.int8_head = true});
  const ModelInfo& info = tied.model().info();
  const double table = double(info.vocabulary * info.hidden) * 2;
  const double difference = double(tied.model().step_cost(1, 0, {}).weight_bytes) -
                            double(made.model().step_cost(1, 0, {}).weight_bytes);
  EXPECT_NEAR(difference, table / 2 - double(info.vocabulary) * 4, 1);
}

}  // namespace
}  // namespace slip
