// config.json of Gemma 4 in the forms it is published in, what is refused, and the five shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/json_files.h"
#include "kernels/ref/ref_ops.h"
#include "models/gemma4/shapes.h"
#include "models/model_source.h"
#include "tests/golden/tiny_folder.h"

namespace slip::gemma4 {
namespace {

using ::testing::HasSubstr;

JsonObject file(const std::string& folder, const char* name) {
  return read_json_object(tiny_folder(folder) / name).value();
}

// The text part of the published E2B file, less what text does not read.
JsonObject e2b() {
  JsonObject text = parse_json(R"({
    "model_type": "gemma4_text", "vocab_size": 262144, "hidden_size": 1536,
    "intermediate_size": 6144, "num_hidden_layers": 35, "num_attention_heads": 8,
    "num_key_value_heads": 1, "head_dim": 256, "global_head_dim": 512,
    "num_global_key_value_heads": null, "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-06, "attention_bias": false,
    "sliding_window": 512, "final_logit_softcapping": 30.0, "use_bidirectional_attention": null,
    "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256,
    "attention_k_eq_v": false, "num_kv_shared_layers": 20, "enable_moe_block": false,
    "use_double_wide_mlp": true, "something_new": {"a": 1}
  })",
                               "test")
                        .value()
                        .as_object();
  JsonArray layers;
  for (int i = 0; i < 35; ++i)
    layers.emplace_back((i + 1) % 5 == 0 ? "full_attention" : "sliding_attention");
  text["layer_types"] = std::move(layers);
  return {{"model_type", "gemma4"}, {"tie_word_embeddings", true}, {"text_config", text}};
}

JsonObject with(JsonObject object, const char* key, const Json& value) {
  object["text_config"].as_object()[key] = value;
  return object;
}

void expect_equal(const Config& a, const Config& b) {
  EXPECT_EQ(a.owners, b.owners);
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (size_t i = 0; i < a.layers.size(); ++i) {
    EXPECT_EQ(a.layers[i].kind, b.layers[i].kind) << i;
    EXPECT_EQ(a.layers[i].mlp_width, b.layers[i].mlp_width) << i;
    EXPECT_EQ(a.layers[i].keys_of, b.layers[i].keys_of) << i;
  }
  for (const LayerKind kind : kKinds) {
    EXPECT_EQ(a.kind(kind).head_dim, b.kind(kind).head_dim);
    EXPECT_EQ(a.kind(kind).kv_heads, b.kind(kind).kv_heads);
    EXPECT_EQ(a.kind(kind).window, b.kind(kind).window);
    EXPECT_EQ(a.kind(kind).live_pairs, b.kind(kind).live_pairs);
    EXPECT_EQ(a.kind(kind).theta, b.kind(kind).theta);
    EXPECT_EQ(a.kind(kind).values_are_keys, b.kind(kind).values_are_keys);
  }
  EXPECT_EQ(a.vocabulary, b.vocabulary);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.q_heads, b.q_heads);
  EXPECT_EQ(a.soft_cap, b.soft_cap);
  EXPECT_EQ(a.ple_width, b.ple_width);
  EXPECT_EQ(a.experts.has_value(), b.experts.has_value());
}

TEST(Gemma4Config, BothFormsSayTheSame) {
  for (const char* folder : {"gemma4_e", "gemma4_31b", "gemma4_26b"}) {
    if (!has_tiny(folder)) GTEST_SKIP() << kTinyAbsent;
    const Config newer = read_config(file(folder, "config.json"), "new").value();
    const Config older = read_config(file(folder, "config.legacy.json"), "old").value();
    expect_equal(newer, older);
  }
}

TEST(Gemma4Config, NamesTheKeysThatNobodyKnows) {
  EXPECT_THAT(read_config(e2b(), "config.json").value().unknown_keys,
              testing::ElementsAre("text_config.something_new"));
  for (const char* folder : {"gemma4_e", "gemma4_31b", "gemma4_26b"}) {
    if (!has_tiny(folder)) GTEST_SKIP() << kTinyAbsent;
    for (const char* name : {"config.json", "config.legacy.json"})
      EXPECT_THAT(read_config(file(folder, name), name).value().unknown_keys, testing::IsEmpty())
          << folder << " " << name;
  }
}

TEST(Gemma4Config, PublishedFilesAreTheShapes) {
  expect_equal(read_config(e2b(), "config.json").value(), *shape_by_name("gemma-4-e2b"));
}

TEST(Gemma4Config, KeysOfLayersMayBePadded) {
  const JsonObject plain = file("gemma4_e", "config.json");
  JsonObject padded = plain;
  JsonObject& by_layer = padded["text_config"].as_object()["per_layer_config"].as_object();
  by_layer["04"] = by_layer["4"];
  by_layer.erase("4");
  expect_equal(read_config(padded, "padded").value(), read_config(plain, "plain").value());
}

TEST(Gemma4Config, LayersReadTheLastOwnerOfTheirKind) {
  const Config config = read_config(e2b(), "config.json").value();
  EXPECT_EQ(config.owners, 15);
  EXPECT_EQ(config.layers[15].keys_of, 13);
  EXPECT_EQ(config.layers[19].keys_of, 14);
  EXPECT_EQ(config.layers[34].keys_of, 14);
  EXPECT_EQ(config.layers[14].mlp_width, 6144);
  EXPECT_EQ(config.layers[15].mlp_width, 12288);
}

// 64 of 256 pairs turn, by powers of the whole head.
TEST(Gemma4Config, FrequenciesOfFullLayers) {
  const Config config = read_config(e2b(), "config.json").value();
  const std::vector<float> full = rope_frequencies(config.kind(LayerKind::full));
  ASSERT_EQ(full.size(), 256u);
  EXPECT_FLOAT_EQ(full[0], 1);
  EXPECT_FLOAT_EQ(full[63], float(std::pow(1e6, -126.0 / 512)));
  EXPECT_EQ(full[64], 0);
  const std::vector<float> sliding = rope_frequencies(config.kind(LayerKind::sliding));
  ASSERT_EQ(sliding.size(), 128u);
  EXPECT_FLOAT_EQ(sliding[127], float(std::pow(1e4, -254.0 / 256)));
}

TEST(Gemma4Config, TheEmbeddingFactorIsRounded) {
  for (const auto& [hidden, factor] : std::vector<std::pair<int64_t, float>>{
           {1536, 39.25f}, {2560, 50.5f}, {3840, 62.0f}, {2816, 53.0f}, {5376, 73.5f}}) {
    Config config;
    config.hidden = hidden;
    EXPECT_EQ(config.embedding_factor(), factor);
  }
}

void expect_refused(const JsonObject& json, std::initializer_list<const char*> parts) {
  const Result<Config> read = read_config(json, "config.json");
  ASSERT_FALSE(read.ok());
  for (const char* part : parts) EXPECT_THAT(read.failure().message, HasSubstr(part));
}

TEST(Gemma4Config, RefusesWhatItDoesNotCompute) {
  expect_refused(with(e2b(), "hidden_activation", "silu"), {"hidden_activation", "silu"});
  expect_refused(with(e2b(), "use_bidirectional_attention", "all"), {"bidirectional", "all"});
  expect_refused(with(e2b(), "num_kv_shared_layers", 35), {"num_kv_shared_layers", "35"});
  expect_refused(with(e2b(), "num_kv_shared_layers", 31), {"num_kv_shared_layers", "kind"});
  expect_refused(with(e2b(), "num_key_value_heads", 3), {"num_key_value_heads", "8", "3"});
  expect_refused(with(e2b(), "num_attention_heads", 256), {"num_attention_heads", "128", "256"});
  expect_refused(with(e2b(), "head_dim", 33), {"head_dim", "even", "33"});
  expect_refused(with(e2b(), "vocab_size_per_layer_input", 1000), {"per_layer_input", "1000"});
  expect_refused(with(e2b(), "layer_types", JsonArray{"sliding_attention"}), {"35", "1"});
  expect_refused(with(e2b(), "per_layer_config", JsonObject{{"35", JsonObject{}}}),
                 {"per_layer_config.35", "35 layers"});
  expect_refused(with(e2b(), "per_layer_config", JsonObject{{"4", JsonObject{{"head_dim", 64}}}}),
                 {"per_layer_config", "one kind"});
  expect_refused(with(e2b(), "rope_parameters",
                      JsonObject{{"full_attention", JsonObject{{"rope_type", "yarn"}}}}),
                 {"rope_type", "yarn"});
}

ModelPlan plan_of(const std::string& shape, bool with_drafter) {
  const std::unique_ptr<Ops> ops = make_ref_ops();
  return ModelSource::synthetic(shape)
      .value()
      .plan({.max_rows = 1, .context = 64, .with_drafter = with_drafter}, *ops)
      .value();
}

struct Millions {
  double read = 0;       // by every token
  double looked_up = 0;  // tables of which a token reads a row
  double experts = 0;
  double drafter = 0;
};

Millions count(const ModelPlan& plan) {
  Millions sum;
  for (const PlacedWeight& weight : plan.weights) {
    const double values = double(weight.info.out) * double(weight.info.in) / 1e6;
    const bool expert = weight.name.find(".experts.") != std::string::npos;
    if (weight.drafts) {
      sum.drafter += values;
    } else {
      (expert ? sum.experts : weight.bytes == 0 ? sum.looked_up : sum.read) += values;
    }
  }
  return sum;
}

// In millions: what a token reads, the table of per-layer embeddings, experts, the drafter.
TEST(Gemma4Shapes, ParametersAddUpToThePublishedTotals) {
  struct Published {
    const char* name;
    double read, table, experts, drafter;
  };
  for (const Published& each : {Published{"gemma-4-e2b", 2279.8, 2348.8, 0, 77.73},
                                Published{"gemma-4-e4b", 4644.5, 2818.6, 0, 78.52},
                                Published{"gemma-4-12b", 11907.35, 0, 0, 422.9},
                                Published{"gemma-4-26b-a4b", 2395.1, 0, 22838.0, 419.7},
                                Published{"gemma-4-31b", 30697.35, 0, 0, 469.5}}) {
    const Millions found = count(plan_of(each.name, true));
    EXPECT_NEAR(found.read, each.read, 0.06) << each.name;
    EXPECT_NEAR(found.looked_up, each.table, 0.06) << each.name;
    EXPECT_NEAR(found.experts, each.experts, 0.06) << each.name;
    EXPECT_NEAR(found.drafter, each.drafter, 0.06) << each.name;
  }
}

// Bytes of keys and values of a position in full layers, bf16.
TEST(Gemma4Shapes, KeysOfAPosition) {
  const std::pair<const char*, uint64_t> published[] = {{"gemma-4-e2b", 6144},
                                                        {"gemma-4-e4b", 16384},
                                                        {"gemma-4-12b", 16384},
                                                        {"gemma-4-26b-a4b", 20480},
                                                        {"gemma-4-31b", 81920}};
  const CacheFormat bf16{.kv = {KvCodec::bf16, KvCodec::bf16}};
  for (const auto& [name, bytes] : published)
    EXPECT_EQ(cache_cost(plan_of(name, false).cache_specs, bf16).bytes_per_page,
              bytes * uint64_t(kPageLen))
        << name;
}

}  // namespace
}  // namespace slip::gemma4
