// Qwen3.5 (and 3.6) text models, dense and MoE, as config.json describes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "models/common/text_config.h"

namespace slip::qwen3_5 {

enum class LayerKind : uint8_t { delta_net, attention };

struct AttentionConfig {
  int64_t q_heads, kv_heads, head_dim;
  int64_t rotary_dims;
};

struct DeltaNetConfig {
  int64_t key_heads, value_heads, key_dim, value_dim;
  int64_t conv_width;

  int64_t key_size() const { return key_heads * key_dim; }
  int64_t value_size() const { return value_heads * value_dim; }
  int64_t conv_channels() const { return 2 * key_size() + value_size(); }
};

struct RopeConfig {
  double theta = 0;
  // YaRN; factor 1 means none.
  double factor = 1;
  double original_context = 0;
};

// The family is "qwen3_5" or "qwen3_5_moe".
struct Config : TextConfig {
  int64_t mtp_layers = 0;
  std::vector<LayerKind> layers;
  AttentionConfig attention{};
  DeltaNetConfig delta_net{};
  RopeConfig rope;
  int64_t mlp_width = 0;  // dense models
};

// `json` is the whole config.json; the text model may be its root or its "text_config".
Result<Config> read_config(const JsonObject& json, const std::string& source);

// Whether this family handles the file's model_type.
bool handles_model_type(const std::string& model_type);

// Rotation frequencies of the rotary pairs and the factor on cos and sin (YaRN).
std::vector<float> rope_frequencies(const Config& config);
float rope_scale(const Config& config);

}  // namespace slip::qwen3_5
