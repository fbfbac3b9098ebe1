// Formats chosen at load: what becomes what, that plans are right, and that drafts stay good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/ref/ref_ops.h"
#include "tests/checkpoint/test_files.h"
#include "tests/golden/golden_file.h"
#include "tests/models/drafting_model.h"

namespace slip {
namespace {

constexpr WeightChoices kAll{.int8_head = true,
                             .shared_experts = WeightFormat::fp8_block,
                             .drafter = WeightFormat::int8_row,
                             .draft_shortlist = 500};

std::map<std::string, WeightFormat> formats_of(const ModelSource& source,
                                               const WeightChoices& choices) {
  const std::unique_ptr<Ops> ops = make_ref_ops();
  const ModelPlan plan =
      source.plan({.max_rows = 1, .context = 64, .with_drafter = true, .weights = choices}, *ops)
          .value();
  std::map<std::string, WeightFormat> formats;
  for (const PlacedWeight& weight : plan.weights)
    if (weight.info.out > 1) formats[weight.name] = weight.info.format;
  return formats;
}

TEST(WeightChoices, ChangeWhatTheyNameAndNothingElse) {
  const ModelSource source = ModelSource::open(minnow_folder()).value();
  const auto before = formats_of(source, {}), after = formats_of(source, kAll);
  for (const auto& [name, format] : after) {
    const bool in_mtp = name.starts_with("mtp.");
    WeightFormat expected = before.contains(name) ? before.at(name) : WeightFormat::int8_row;
    if (name == "lm_head") expected = WeightFormat::int8_row;
    if (name.find(".shared_expert.") != std::string::npos) expected = WeightFormat::fp8_block;
    if (in_mtp && !name.ends_with("mlp.gate")) expected = WeightFormat::int8_row;
    EXPECT_EQ(format, expected) << name;
  }
  EXPECT_EQ(after.size(), before.size() + 1) << "the rows that drafting scores";
  EXPECT_EQ(after.at("mtp.fc"), WeightFormat::int8_row);
  EXPECT_EQ(before.at("mtp.fc"), WeightFormat::bf16);
  EXPECT_EQ(after.at("model.language_model.embed_tokens"), WeightFormat::bf16);
}

TEST(WeightChoices, DraftRowsAreKeptAsTheHeadOrAsTheDrafter) {
  const ModelSource source = ModelSource::open(minnow_folder()).value();
  const auto draft_rows = [&](const WeightChoices& choices) {
    return formats_of(source, choices).at("mtp.draft_head");
  };
  EXPECT_EQ(draft_rows({.draft_shortlist = 9}), WeightFormat::bf16);
  EXPECT_EQ(draft_rows({.int8_head = true, .draft_shortlist = 9}), WeightFormat::int8_row);
  EXPECT_EQ(draft_rows({.drafter = WeightFormat::int8_row, .draft_shortlist = 9}),
            WeightFormat::int8_row);
  EXPECT_FALSE(formats_of(source, {.draft_shortlist = 8192}).contains("mtp.draft_head"));
}

TEST(WeightChoices, AShortlistOfOneIsRefused) {
  const std::unique_ptr<Ops> ops = make_ref_ops();
  const ModelOptions options{
      .max_rows = 1, .context = 64, .with_drafter = true, .weights = {.draft_shortlist = 1}};
  expect_error(ModelSource::open(minnow_folder()).value().plan(options, *ops),
               {"at least 2 tokens to choose between, not 1"});
  expect_error(ModelSource::synthetic("qwen3.5-35b-a3b").value().plan(options, *ops),
               {"at least 2 tokens to choose between, not 1"});
}

TEST(WeightChoices, AreInThePlan) {
  const ModelSource source = ModelSource::open(minnow_folder()).value();
  ThreadPool pool(2);
  const std::unique_ptr<Ops> ops = make_cpu_ops(pool);
  const auto planned = [&](const WeightChoices& choices) {
    const ModelOptions options{
        .max_rows = 8, .context = 64, .with_drafter = true, .weights = choices};
    const uint64_t bytes = source.plan(options, *ops).value().weight_bytes;
    EXPECT_EQ(source.load(options, *ops, pool, {}).value()->weight_bytes(), bytes);
    return int64_t(bytes);
  };
  const int64_t plain = planned({});
  EXPECT_NEAR(planned({.int8_head = true}), plain - 8192 * 384 + 8192 * 4, 64);
  EXPECT_NEAR(planned({.shared_experts = WeightFormat::fp8_block}),
              plain - 8 * 3 * 128 * 384 + 8 * 9 * 4, 2048);
  EXPECT_NEAR(planned({.draft_shortlist = 1024}), plain + 1024 * 384 * 2, 64);
  // The layer shrinks; drafting gets rows of the head of its own, unless the head is as small.
  const int64_t head = 8192 * 384;
  const int64_t int8 = planned({.drafter = WeightFormat::int8_row});
  EXPECT_LT(int8 - head, plain - 3500000);
  EXPECT_LT(planned({.drafter = WeightFormat::int4_group}), int8 - head / 2);
  EXPECT_LT(planned({.int8_head = true, .drafter = WeightFormat::int8_row}),
            plain - 3500000 - head);
}

TEST(WeightChoices, WithoutAnMtpLayerThereIsNoShortlist) {
  const auto folder = golden_folder() / "tiny/qwen3_5_moe";
  DraftingModel model(folder, ref_backend(), kAll);
  EXPECT_FALSE(model.model().info().drafter);
  EXPECT_EQ(model.model().drafter(), nullptr);
}

// The embedding stays what it is; the head becomes a matrix of its own.
TEST(WeightChoices, ATiedHeadIsMadeFromTheEmbedding) {
  const auto folder = golden_folder() / "tiny/qwen3_5_dense";
  const ModelSource source = ModelSource::open(folder).value();
  const auto before = formats_of(source, {}), after = formats_of(source, {.int8_head = true});
  ASSERT_FALSE(before.contains("lm_head")) << "the test needs a tied head";
  EXPECT_EQ(after.at("lm_head"), WeightFormat::int8_row);
  EXPECT_EQ(after.at("model.language_model.embed_tokens"), WeightFormat::bf16);
  DraftingModel tied(folder, ref_backend()), made(folder, ref_backend(), {.int8_head = true});
  const std::vector<int32_t> ids = GoldenFile(folder / "golden.safetensors").ints("short.ids");
  const std::vector<float> exact = tied.run(ids).logits.values, found = made.run(ids).logits.values;
  double error = 0, size = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(double(found[i]) - exact[i], 2);
    size += std::pow(double(exact[i]), 2);
  }
  EXPECT_GT(error, 0) << "the head was not recoded";
  EXPECT_LE(std::sqrt(error / size), 0.02);
}

class Shortlist : public ::testing::TestWithParam<Backend> {};

// A draft scores its tokens as it would among all of them, bit for bit.
TEST_P(Shortlist, LogitsAreThoseOfTheWholeHead) {
  std::vector<int32_t> ids = prompt_ids("tool_call");
  ids.resize(40);
  for (const bool int8 : {false, true}) {
    DraftingModel whole(minnow_folder(), GetParam(),
                        {.int8_head = int8,
                         .drafter = int8 ? std::optional(WeightFormat::int8_row) : std::nullopt});
    DraftingModel some(minnow_folder(), GetParam(),
                       {.int8_head = int8,
                        .drafter = int8 ? std::optional(WeightFormat::int8_row) : std::nullopt,
                        .draft_shortlist = 301});
    const DraftingModel::Rows expected = whole.run(ids), found = some.run(ids);
    const std::span<const int32_t> tokens = some.model().drafter()->tokens();
    ASSERT_EQ(tokens.size(), 301u);
    ASSERT_EQ(found.drafts.rows(), int64_t(ids.size()) - 1);
    EXPECT_EQ(found.logits.values, expected.logits.values);
    for (int64_t row = 0; row < found.drafts.rows(); ++row)
      for (size_t i = 0; i < tokens.size(); ++i)
        ASSERT_EQ(found.drafts.row(row)[i], expected.drafts.row(row)[size_t(tokens[i])])
            << "slot " << row << ", token " << tokens[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Shortlist, ::testing::ValuesIn(all_backends()),
                         [](const auto& test) { return test.param.name; });

// The share of slots whose draft is what the model itself chooses.
double agreement(DraftingModel& model, const std::string& sample) {
  const GoldenFile samples(golden_folder() / "minnow/samples.safetensors");
  const std::vector<int32_t> ids = samples.ints(sample);
  const std::span<const int32_t> tokens = model.model().drafter()->tokens();
  int64_t same = 0, slots = 0;
  for (size_t begin = 0; begin < ids.size(); begin += 1024) {
    const DraftingModel::Rows rows = model.run(std::span(ids).subspan(begin, 1024));
    for (int64_t p = 0; p + 1 < rows.drafts.rows(); ++p, ++slots) {
      const int32_t best = argmax(rows.drafts.row(p));
      const int32_t draft = tokens.empty() ? best : tokens[size_t(best)];
      same += draft == argmax(rows.logits.row(p + 1));
    }
  }
  return double(same) / double(slots);
}

TEST(Drafter, LosesNextToNothingByInt8) {
  DraftingModel exact(minnow_folder(), fast_backends().front());
  DraftingModel coarse(minnow_folder(), fast_backends().front(),
                       {.drafter = WeightFormat::int8_row});
  for (const std::string sample : {"docs", "chat"}) {
    const double before = agreement(exact, sample), after = agreement(coarse, sample);
    RecordProperty(sample + "_as_stored", cat(before));
    RecordProperty(sample + "_int8", cat(after));
    EXPECT_GE(after, before - 0.005) << sample << ": " << before << " as stored";
  }
}

// By identifiers alone: minnow's vocabulary is small, and much of it is in use.
TEST(Drafter, LosesLittleByHalfOfTheHead) {
  DraftingModel whole(minnow_folder(), fast_backends().front());
  DraftingModel some(minnow_folder(), fast_backends().front(), {.draft_shortlist = 4096});
  for (const std::string sample : {"docs", "chat"}) {
    const double before = agreement(whole, sample), after = agreement(some, sample);
    RecordProperty(sample + "_shortlist", cat(after));
    EXPECT_GE(after, before - 0.08) << sample << ": " << before << " with the whole head";
    EXPECT_LT(after, before) << "is the shortlist in use?";
  }
}

}  // namespace
}  // namespace slip
