// config.json of Qwen3.5 in all the forms it is published in, and what is refused.
#include "models/qwen3_5/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "models/qwen3_5/shapes.h"
#include "tests/golden/golden_file.h"

namespace slip::qwen3_5 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The text part of a published 35B-A3B file, less what only training reads.
JsonObject text_config() {
  return parse_json(R"({
    "model_type": "qwen3_5_moe_text", "vocab_size": 248320, "hidden_size": 2048,
    "num_hidden_layers": 40, "num_attention_heads": 16, "num_key_value_heads": 2,
    "head_dim": 256, "hidden_act": "silu", "max_position_embeddings": 262144,
    "rms_norm_eps": 1e-06, "attention_bias": false, "attn_output_gate": true,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512, "num_experts": 256, "num_experts_per_tok": 8,
    "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false,
    "full_attention_interval": 4, "mlp_only_layers": [], "eos_token_id": 248044,
    "mamba_ssm_dtype": "float32", "dtype": "bfloat16",
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000000,
      "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10], "mrope_interleaved": true}
  })",
                    "test")
      .value()
      .as_object();
}

JsonObject nested(const JsonObject& text) {
  return {{"model_type", "qwen3_5_moe"},
          {"tie_word_embeddings", false},
          {"text_config", text},
          {"vision_config", JsonObject{{"depth", 27}, {"hidden_act", "gelu_pytorch_tanh"}}}};
}

JsonObject with(JsonObject object, const char* key, const Json& value) {
  object[key] = value;
  return object;
}
JsonObject without(JsonObject object, const char* key) {
  object.erase(key);
  return object;
}
JsonObject with_rope(const char* key, const Json& value) {
  JsonObject object = text_config();
  object["rope_parameters"].as_object()[key] = value;
  return object;
}

Config read(const JsonObject& json) {
  const Result<Config> config = read_config(json, "config.json");
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.failure().message);
  return config.ok() ? config.value() : Config{};
}

void expect_refused(const JsonObject& json, std::initializer_list<const char*> parts) {
  const Result<Config> config = read_config(json, "folder/config.json");
  ASSERT_FALSE(config.ok()) << "expected an error with: " << *parts.begin();
  EXPECT_THAT(config.failure().message, HasSubstr("folder/config.json"));
  for (const char* part : parts) EXPECT_THAT(config.failure().message, HasSubstr(part));
}

void expect_published_35b(const Config& config) {
  const Config shape = *shape_by_name("qwen3.5-35b-a3b");
  EXPECT_EQ(config.family, shape.family);
  EXPECT_EQ(config.vocabulary, shape.vocabulary);
  EXPECT_EQ(config.hidden, shape.hidden);
  EXPECT_EQ(config.max_context, shape.max_context);
  EXPECT_EQ(config.eps, shape.eps);
  EXPECT_EQ(config.tied_head, shape.tied_head);
  EXPECT_EQ(config.mtp_layers, shape.mtp_layers);
  EXPECT_EQ(config.layers, shape.layers);
  EXPECT_EQ(config.attention.q_heads, shape.attention.q_heads);
  EXPECT_EQ(config.attention.kv_heads, shape.attention.kv_heads);
  EXPECT_EQ(config.attention.head_dim, shape.attention.head_dim);
  EXPECT_EQ(config.attention.rotary_dims, shape.attention.rotary_dims);
  EXPECT_EQ(config.delta_net.conv_channels(), 8192);
  EXPECT_EQ(config.rope.theta, 1e7);
  EXPECT_EQ(config.rope.factor, 1);
  ASSERT_TRUE(config.experts);
  EXPECT_EQ(config.experts->experts, 256);
  EXPECT_EQ(config.experts->top_k, 8);
}

TEST(Qwen35Config, ReadsTheTextConfigOfAVisionModel) {
  expect_published_35b(read(nested(text_config())));
}

TEST(Qwen35Config, ReadsATextOnlyExport) { expect_published_35b(read(text_config())); }

TEST(Qwen35Config, ReadsFilesThatKeepRopeAtTheTop) {
  JsonObject flat = without(text_config(), "rope_parameters");
  flat["rope_theta"] = 10000000;
  flat["partial_rotary_factor"] = 0.25;
  expect_published_35b(read(flat));
}

TEST(Qwen35Config, TakesTheClassDefaultsForAbsentKeys) {
  JsonObject json = text_config();
  for (const char* key : {"head_dim", "rms_norm_eps", "attention_bias", "attn_output_gate",
                          "linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim",
                          "linear_num_key_heads", "linear_num_value_heads", "hidden_act",
                          "full_attention_interval", "mtp_use_dedicated_embeddings"})
    json.erase(key);
  JsonObject& rope = json["rope_parameters"].as_object();
  rope.erase("partial_rotary_factor");
  rope.erase("rope_type");
  expect_published_35b(read(json));
}

TEST(Qwen35Config, LayerTypesDecideAndTheIntervalIsTheirDefault) {
  const Config periodic = read(with(text_config(), "num_hidden_layers", 5));
  EXPECT_EQ(periodic.layers,
            (std::vector{LayerKind::delta_net, LayerKind::delta_net, LayerKind::delta_net,
                         LayerKind::attention, LayerKind::delta_net}));
  JsonObject json = with(text_config(), "num_hidden_layers", 2);
  json["layer_types"] = JsonArray{"full_attention", "linear_attention"};
  EXPECT_EQ(read(json).layers, (std::vector{LayerKind::attention, LayerKind::delta_net}));
}

TEST(Qwen35Config, AHeadIsTiedIfEitherLevelSaysSo) {
  EXPECT_FALSE(read(nested(text_config())).tied_head);
  EXPECT_TRUE(read(with(text_config(), "tie_word_embeddings", true)).tied_head);
  EXPECT_TRUE(read(nested(with(text_config(), "tie_word_embeddings", true))).tied_head);
  EXPECT_TRUE(read(with(nested(text_config()), "tie_word_embeddings", true)).tied_head);
}

TEST(Qwen35Config, NamesTheKeysThatNobodyKnows) {
  EXPECT_THAT(read(nested(text_config())).unknown_keys, IsEmpty());
  JsonObject flat = text_config();
  flat["architectures"] = JsonArray{"Qwen3_5MoeForCausalLM"};
  flat["quantization_config"] = JsonObject{{"bits", 4}};
  EXPECT_THAT(read(flat).unknown_keys, IsEmpty());
  flat["attention_sinks"] = 4;
  flat["attention_scale"] = nullptr;
  EXPECT_THAT(read(flat).unknown_keys, ElementsAre("attention_sinks"));
  EXPECT_THAT(read(nested(with_rope("truncate", false))).unknown_keys,
              ElementsAre("text_config.rope_parameters.truncate"));
}

TEST(Qwen35Config, OfTheRepositoryHaveNoUnknownKeys) {
  for (const char* folder : {"qwen3_5_moe", "qwen3_5_moe_split", "qwen3_5_dense"})
    EXPECT_THAT(read(read_config_json(golden_folder() / "tiny" / folder).value()).unknown_keys,
                IsEmpty())
        << folder;
  EXPECT_THAT(read(read_config_json(minnow_folder()).value()).unknown_keys, IsEmpty());
}

TEST(Qwen35Config, ReadsDenseModels) {
  JsonObject json = with(text_config(), "model_type", "qwen3_5_text");
  json["intermediate_size"] = 6144;
  const Config config = read(json);
  EXPECT_EQ(config.family, "qwen3_5");
  EXPECT_EQ(config.mlp_width, 6144);
  EXPECT_FALSE(config.experts);
}

TEST(Qwen35Config, ReadsEveryFileWeHave) {
  std::vector<std::filesystem::path> folders = {minnow_folder()};
  for (const char* name : {"qwen3_5_dense", "qwen3_5_moe", "qwen3_5_moe_split"})
    folders.push_back(golden_folder() / "tiny" / name);
  for (const std::filesystem::path& folder : folders) {
    const std::string text = read_text_file(folder / "config.json").value();
    read(parse_json(text, folder.string()).value().as_object());
  }
}

TEST(Qwen35Config, RefusesWhatIsNotImplemented) {
  expect_refused(with(text_config(), "model_type", "llama"), {"model_type", "Qwen3.5", "llama"});
  expect_refused(with(text_config(), "head_dim", 2048), {"head_dim", "1024", "2048"});
  expect_refused(with(text_config(), "linear_key_head_dim", 1024),
                 {"linear_key_head_dim", "512", "1024"});
  expect_refused(with(text_config(), "num_attention_heads", 4096), {"num_attention_heads", "128"});
  expect_refused(with(text_config(), "hidden_act", "gelu"), {"hidden_act", "silu", "gelu"});
  expect_refused(with(text_config(), "attention_bias", true), {"attention_bias", "false", "true"});
  expect_refused(with(text_config(), "attn_output_gate", false), {"attn_output_gate"});
  expect_refused(with(text_config(), "norm_topk_prob", false), {"norm_topk_prob"});
  expect_refused(with(text_config(), "mtp_use_dedicated_embeddings", true), {"mtp_use_dedicated"});
  expect_refused(with(text_config(), "output_gate_type", "sigmoid"),
                 {"output_gate_type", "sigmoid"});
  expect_refused(with(text_config(), "mtp_num_hidden_layers", 2), {"mtp_num_hidden_layers", "2"});
  expect_refused(with_rope("rope_type", "llama3"),
                 {"rope_parameters.rope_type", "\"default\" or \"yarn\"", "llama3"});
  JsonObject json = with(text_config(), "num_hidden_layers", 1);
  json["layer_types"] = JsonArray{"sliding_attention"};
  expect_refused(json, {"layer_types", "full_attention", "sliding_attention"});
}

TEST(Qwen35Config, RefusesValuesThatDoNotFitTogether) {
  expect_refused(with(text_config(), "num_key_value_heads", 3),
                 {"num_key_value_heads", "divide", "16", "3"});
  expect_refused(with(text_config(), "linear_num_key_heads", 5),
                 {"linear_num_key_heads", "divide"});
  expect_refused(with(text_config(), "num_experts_per_tok", 257), {"num_experts_per_tok", "257"});
  expect_refused(with_rope("partial_rotary_factor", 1.5), {"partial_rotary_factor", "1.5"});
  expect_refused(with_rope("partial_rotary_factor", 0), {"partial_rotary_factor", "0"});
  expect_refused(with_rope("rope_theta", 0.5), {"rope_theta", "0.5"});
  const JsonObject flat = without(text_config(), "rope_parameters");
  expect_refused(with(flat, "rope_theta", 0.5), {"rope_theta", "0.5"});
  expect_refused(with(flat, "partial_rotary_factor", 1e300), {"partial_rotary_factor"});
  JsonObject json = text_config();
  json["layer_types"] = JsonArray{"full_attention"};
  expect_refused(json, {"layer_types", "1 layers", "40"});
  for (const double eps : {-1.0, 0.0, 1.0, 1e-300, 1e300})
    expect_refused(with(text_config(), "rms_norm_eps", eps), {"rms_norm_eps", "(0, 1)"});
}

TEST(Qwen35Config, RefusesMissingAndAbsurdValues) {
  for (const char* key :
       {"model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "num_experts", "num_experts_per_tok", "moe_intermediate_size"})
    expect_refused(without(text_config(), key), {key});
  expect_refused(with(text_config(), "hidden_size", 0), {"hidden_size", "0"});
  expect_refused(with(text_config(), "hidden_size", -4), {"hidden_size", "-4"});
  expect_refused(with(text_config(), "vocab_size", int64_t{1} << 40), {"vocab_size"});
  expect_refused(with(text_config(), "num_hidden_layers", 1 << 20), {"num_hidden_layers"});
  expect_refused(with(text_config(), "num_experts", 1 << 16),
                 {"num_experts", "262144 in all layers together, found 65536 in each of 40"});
  expect_refused(with(text_config(), "hidden_size", "2048"),
                 {"hidden_size", "an integer", "\"2048\""});
  expect_refused(nested(with(text_config(), "hidden_size", "2048")), {"text_config.hidden_size"});
}

// The formula of the YaRN paper, with its names.
TEST(Qwen35Rope, FrequenciesFollowYarn) {
  const double theta = 1e7, factor = 4, original = 262144;
  JsonObject json = with_rope("rope_type", "yarn");
  JsonObject& rope = json["rope_parameters"].as_object();
  rope["factor"] = factor;
  rope["original_max_position_embeddings"] = int64_t(original);
  const Config config = read(json);
  const std::vector<float> found = rope_frequencies(config);
  const double dims = 64;
  const auto c = [&](double n) {
    return dims * std::log(original / (2 * std::numbers::pi * n)) / (2 * std::log(theta));
  };
  const double lo = std::floor(c(32)), hi = std::ceil(c(1));
  ASSERT_LT(0, lo);
  ASSERT_LT(hi, 32);
  ASSERT_EQ(found.size(), 32u);
  for (int j = 0; j < 32; ++j) {
    const double period = std::pow(theta, 2 * j / dims);
    const double ramp = std::clamp((j - lo) / (hi - lo), 0.0, 1.0);
    const double expected = ramp / (factor * period) + (1 - ramp) / period;
    EXPECT_NEAR(found[size_t(j)], expected, expected * 1e-6) << j;
  }
  EXPECT_FLOAT_EQ(found[0], 1.0f) << "fast dimensions keep their frequency";
  EXPECT_FLOAT_EQ(found[31], float(std::pow(theta, -62.0 / 64) / 4)) << "slow ones are stretched";
  EXPECT_FLOAT_EQ(rope_scale(config), float(0.1 * std::log(4.0) + 1));
}

TEST(Qwen35Rope, WithoutYarnFrequenciesArePowers) {
  const Config config = read(text_config());
  const std::vector<float> found = rope_frequencies(config);
  ASSERT_EQ(found.size(), 32u);
  for (int j = 0; j < 32; ++j)
    EXPECT_FLOAT_EQ(found[size_t(j)], float(std::pow(1e7, -2.0 * j / 64)));
  EXPECT_EQ(rope_scale(config), 1.0f);
}

TEST(Qwen35Rope, YarnNeedsItsParameters) {
  expect_refused(with_rope("rope_type", "yarn"), {"rope_parameters.factor"});
  JsonObject json = with_rope("rope_type", "yarn");
  json["rope_parameters"].as_object()["factor"] = 0.5;
  json["rope_parameters"].as_object()["original_max_position_embeddings"] = 262144;
  expect_refused(json, {"factor", "at least 1", "0.5"});
}

TEST(Qwen35Rope, RefusesYarnSettingsThatWouldChangeTheFormula) {
  JsonObject json = with_rope("rope_type", "yarn");
  JsonObject& rope = json["rope_parameters"].as_object();
  rope["factor"] = 4;
  rope["original_max_position_embeddings"] = 262144;
  read(json);
  for (const char* key : {"beta_fast", "beta_slow", "attention_factor", "mscale"}) {
    JsonObject changed = json;
    changed["rope_parameters"].as_object()[key] = 7.5;
    expect_refused(changed, {key, "7.5"});
  }
}

// The older spelling of the key must not be taken for "no scaling".
TEST(Qwen35Rope, ReadsTheOlderNameOfTheType) {
  JsonObject json = without(text_config(), "rope_parameters");
  json["rope_theta"] = 10000000;
  json["rope_scaling"] =
      JsonObject{{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 262144}};
  EXPECT_EQ(read(json).rope.factor, 4);
  json["rope_scaling"].as_object()["type"] = "linear";
  expect_refused(json, {"rope_scaling", "linear"});
}

}  // namespace
}  // namespace slip::qwen3_5
