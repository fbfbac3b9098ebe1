// Gemma 4 text models, as config.json describes them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "models/common/text_config.h"

namespace slip::gemma4 {

// Sliding layers see a window of positions, full layers all of them.
enum class LayerKind : uint8_t { sliding, full };
inline constexpr std::array kKinds = {LayerKind::sliding, LayerKind::full};

// What layers of one kind share.
struct KindConfig {
  int64_t kv_heads = 0, head_dim = 0;
  int64_t window = 0;            // positions; 0: all
  bool values_are_keys = false;  // values come from the key projection
  double theta = 0;              // of the rotation
  int64_t live_pairs = 0;        // of head_dim / 2; the others do not turn
  double frequency_divisor = 1;
};

struct LayerConfig {
  LayerKind kind;
  int64_t mlp_width;
  int64_t keys_of;  // the layer whose keys and values it reads: itself, or an earlier one
};

// The family is "gemma4" or "gemma4_moe", with experts beside the dense MLP.
struct Config : TextConfig {
  int64_t q_heads = 0;
  float soft_cap = 0;  // of the logits; 0: none
  std::array<KindConfig, 2> kinds{};
  std::vector<LayerConfig> layers;
  int64_t owners = 0;  // the first layers, which have keys and values of their own
  // Per-layer embeddings; width 0: none.
  int64_t ple_width = 0, ple_vocabulary = 0;

  const KindConfig& kind(LayerKind which) const { return kinds[size_t(which)]; }
  const KindConfig& kind_of(const LayerConfig& layer) const { return kind(layer.kind); }
  int64_t widest_mlp() const;
  int64_t ple_values() const { return int64_t(layers.size()) * ple_width; }
  // The square root of `hidden` as bf16 files mean it: rounded.
  float embedding_factor() const;
};

// `json` is the whole config.json; the text model may be its root or its "text_config".
Result<Config> read_config(const JsonObject& json, const std::string& source);

// The text part alone; `shared` are its last layers, without keys of their own.
Config read_text_config(ConfigReader& text, int64_t& shared);

// Whether this family handles the text model's model_type.
bool handles_model_type(const std::string& model_type);

// Of all head_dim / 2 pairs.
std::vector<float> rope_frequencies(const KindConfig& kind);

// The last layer of this kind that has keys of its own.
std::optional<int64_t> last_owner(const Config& config, LayerKind kind);

// Gives each layer the layer whose keys it reads: the last `shared` ones those of the last owner of
// their kind. False if one finds no owner.
bool share_keys(Config& config, int64_t shared);

}  // namespace slip::gemma4
