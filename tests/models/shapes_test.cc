// Published shapes: the weight table must add up to the published sizes.
#include <gtest/gtest.h>

#include "kernels/ref/ref_ops.h"
#include "models/model_source.h"

namespace slip {
namespace {

ModelPlan plan_of(const std::string& shape, bool with_drafter) {
  const std::unique_ptr<Ops> ops = make_ref_ops();
  const ModelSource source = ModelSource::synthetic(shape).value();
  return source.plan({.max_rows = 1, .context = 64, .with_drafter = with_drafter}, *ops).value();
}

double billions(const ModelPlan& plan) {
  int64_t parameters = 0;
  for (const PlacedWeight& weight : plan.weights) parameters += weight.info.out * weight.info.in;
  return double(parameters) / 1e9;
}

// Billions, of the text model alone.
TEST(Shapes, ParametersAddUpToThePublishedTotals) {
  EXPECT_NEAR(billions(plan_of("qwen3.5-122b-a10b", false)), 122.1115, 5e-5);
  EXPECT_NEAR(billions(plan_of("qwen3.5-35b-a3b", false)), 34.6606, 5e-5);
}

// Tensors of the text model, where the experts of a layer are two tensors.
TEST(Shapes, TensorsAreAsManyAsThePublishedFilesHold) {
  const auto tensors = [](const std::string& shape) {
    const ModelPlan plan = plan_of(shape, false);
    int64_t count = 2 * plan.info.layers;
    for (const PlacedWeight& weight : plan.weights)
      count += weight.name.find(".experts.") == std::string::npos;
    return count;
  };
  EXPECT_EQ(tensors("qwen3.5-122b-a10b"), 831);
  EXPECT_EQ(tensors("qwen3.5-35b-a3b"), 693);
}

TEST(Shapes, TheMtpLayerIsExtra) {
  const ModelPlan without = plan_of("qwen3.5-35b-a3b", false);
  const ModelPlan with = plan_of("qwen3.5-35b-a3b", true);
  EXPECT_FALSE(without.info.drafter);
  EXPECT_EQ(with.info.drafter, DrafterKeys::own);
  EXPECT_GT(billions(with), billions(without) + 0.8);
  EXPECT_EQ(with.cache_specs.size(), without.cache_specs.size() + 1);
}

TEST(Shapes, EveryNameHasAShapeNearItsSize) {
  for (const std::string& name : ModelSource::shape_names()) {
    if (name == "qwen3.5-nano") continue;     // ours, and named after no size
    if (name.starts_with("gemma")) continue;  // sizes without embeddings: gemma4_config_test.cc
    const double size = std::stod(name.substr(name.find('-') + 1));
    EXPECT_NEAR(billions(plan_of(name, false)), size, 0.13 * size) << name;
  }
}

TEST(Shapes, PlannedBytesHoldEveryWeight) {
  const ModelPlan plan = plan_of("qwen3.5-35b-a3b", true);
  uint64_t bytes = 0;
  for (const PlacedWeight& weight : plan.weights) bytes += weight.bytes;
  EXPECT_GE(plan.weight_bytes, bytes);
  EXPECT_LE(plan.weight_bytes, bytes + 64 * plan.weights.size());
}

TEST(Shapes, AreInTheFormatThatTheirNamesEndIn) {
  const auto stored = [](const std::string& shape, WeightFormat format) {
    double share = 0;
    for (const PlacedWeight& weight : plan_of(shape, false).weights)
      if (weight.info.format == format) share += double(weight.info.out * weight.info.in);
    return share / 1e9 / billions(plan_of(shape, false));
  };
  for (const std::string shape : {"qwen3.5-35b-a3b", "gemma-4-26b-a4b"}) {
    EXPECT_GT(stored(shape, WeightFormat::int4_group), 0.9) << shape;
    EXPECT_GT(stored(shape + "-fp8", WeightFormat::fp8_block), 0.9) << shape;
    EXPECT_GT(stored(shape + "-bf16", WeightFormat::bf16), 0.99) << shape;
    EXPECT_TRUE(ModelSource::is_shape(shape + "-fp8"));
    EXPECT_FALSE(ModelSource::is_shape(shape + "-fp9"));
  }
}

// Routers, gates, what is small or looked up: they stay as they are.
TEST(Shapes, Fp8FilesHaveSharedExpertsAndDraftersInFp8) {
  for (const PlacedWeight& weight : plan_of("qwen3.5-35b-a3b-fp8", true).weights) {
    const auto has = [&](const char* part) { return weight.name.find(part) != std::string::npos; };
    if (has("norm") || weight.info.format == WeightFormat::f32) continue;
    const bool small = has("in_proj_a") || has("in_proj_b") || has("lm_head") ||
                       has("embed_tokens") || weight.name.ends_with("mlp.gate") ||
                       has("shared_expert_gate") || has("mtp.fc");
    EXPECT_EQ(weight.info.format, small ? WeightFormat::bf16 : WeightFormat::fp8_block)
        << weight.name;
  }
}

TEST(Shapes, AnUnknownNameListsTheKnownOnes) {
  const Result<ModelSource> source = ModelSource::synthetic("qwen3.5-7b");
  ASSERT_FALSE(source.ok());
  for (const char* part : {"qwen3.5-7b", "qwen3.5-35b-a3b", "qwen3.5-122b-a10b"})
    EXPECT_NE(source.failure().message.find(part), std::string::npos) << source.failure().message;
}

}  // namespace
}  // namespace slip
