// What config.json says of a text model, whatever its family.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/config_reader.h"
#include "models/model.h"

namespace slip {

// Sizes beyond this are not models; they would only overflow a product somewhere.
inline constexpr int64_t kMaxDim = int64_t{1} << 24;

// The largest heads that kernels are made for.
inline constexpr int64_t kMaxHeadDim = 1024;

struct ExpertsConfig {
  int64_t experts, top_k;
  int64_t width;
  int64_t shared_width = 0;  // of the expert that every token meets; 0: none
};

struct TextConfig {
  std::string family;  // "qwen3_5_moe", "gemma4"
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t max_context = 0;
  float eps = 0;
  bool tied_head = false;
  std::optional<ExpertsConfig> experts;   // of every layer
  std::vector<std::string> unknown_keys;  // of config.json, as unknown_keys() finds them
};

// Vocabulary, hidden size, context and eps.
void read_sizes(ConfigReader& text, int64_t usual_context, TextConfig& config);

// Whether the head is the embedding. Files say it at the top or in the text config; if the two
// differ, the one that is not the family's usual answer holds.
bool read_tied_head(ConfigReader& root, ConfigReader& text, bool usually);

// For every layer whether it attends to all positions, which layer_types calls "full_attention";
// the others are of type `other`. Without that list every `interval`th layer does.
std::vector<bool> read_full_layers(ConfigReader& text, const char* other, int64_t interval);

// Experts of each of so many layers, how many of them a token meets, and their width.
ExpertsConfig read_experts(ConfigReader& text, size_t layers, const char* top_k_key);

// Refuses numbers of heads that attention cannot share keys among.
void check_heads(ConfigReader& text, int64_t q_heads, int64_t kv_heads);

// Refuses a theta that is not above 1, and a `share` of rotated dimensions outside (0, 1].
void check_rope(ConfigReader& rope, double theta, double share);

// When all has been read: the keys of the text model that nobody asked for and that may matter.
// Others change no text: what only training and transformers itself use, and the family's own
// `harmless` ones.
std::vector<std::string> unknown_keys(const ConfigReader& text,
                                      std::vector<std::string_view> harmless);

// Tells a person about them; `file` is whose they are.
void warn_of_unknown_keys(const std::string& file, const TextConfig& config,
                          std::vector<std::string>& warnings);

ModelInfo model_info(const TextConfig& config, size_t layers, std::optional<DrafterKeys> drafter);

// What `config` says of the largest step. What is already in `limits` stays if it is larger.
void cover(const TextConfig& config, StepLimits& limits);

}  // namespace slip
