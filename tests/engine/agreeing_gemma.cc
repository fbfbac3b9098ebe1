#include "tests/engine/agreeing_gemma.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/safetensors.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDrafterLayers = 4;
// The first value of every name, which no layer changes, so that a gate can always be open.
constexpr float kConstant = 2;

using Matrix = std::vector<float>;  // row after row

class Files {
 public:
  explicit Files(uint32_t seed) : random_(seed) {}

  void add(const std::string& name, std::vector<int64_t> shape, const Matrix& values) {
    std::vector<uint16_t>& bits = bits_.emplace_back();
    bits.reserve(values.size());
    for (const float value : values) bits.push_back(float_to_bf16(value));
    tensors_.push_back({name, StoredType::bf16, std::move(shape), std::as_bytes(std::span(bits))});
  }

  // Random, of a size that keeps the sizes of what it multiplies.
  Matrix random(int64_t out, int64_t in, float factor = 1) {
    const float limit = factor * std::sqrt(3 / float(in));
    std::uniform_real_distribution<float> values(-limit, limit);
    Matrix matrix(size_t(out * in));
    for (float& value : matrix) value = values(random_);
    return matrix;
  }
  void add_random(const std::string& module, int64_t out, int64_t in) {
    add(module + ".weight", {out, in}, random(out, in));
  }
  void add_scale(const std::string& norm, int64_t size, float value) {
    add(norm + ".weight", {size}, Matrix(size_t(size), value));
  }

  // Of what is added to the hidden state, whose first value stays what it is.
  void add_branch_scale(const std::string& norm, int64_t size, float value) {
    Matrix scale(size_t(size), value);
    scale[0] = 0;
    add(norm + ".weight", {size}, scale);
  }

  void write(const fs::path& folder, const JsonObject& config) const {
    fs::create_directories(folder);
    std::ofstream(folder / "config.json") << dump_json(config);
    const Status written = write_safetensors(folder / "model.safetensors", tensors_, "pt");
    check(written.ok(), written.ok() ? "" : written.failure().message);
  }

 private:
  std::minstd_rand random_;
  std::deque<std::vector<uint16_t>> bits_;
  std::vector<TensorToWrite> tensors_;
};

// One round trip through all tokens.
std::vector<int64_t> successors(int64_t vocabulary) {
  std::vector<int64_t> trip(static_cast<size_t>(vocabulary));
  std::iota(trip.begin(), trip.end(), 0);
  std::ranges::shuffle(trip, std::minstd_rand(1));
  std::vector<int64_t> next(trip.size());
  for (size_t i = 0; i < trip.size(); ++i) next[size_t(trip[i])] = trip[(i + 1) % trip.size()];
  return next;
}

Matrix make_names(const AgreeingSizes& sizes) {
  const int64_t size = sizes.hidden / 2;
  std::minstd_rand random(2);
  std::normal_distribution<float> values;
  Matrix names(size_t(sizes.vocabulary * size));
  for (float& value : names) value = values(random);
  for (int64_t token = 0; token < sizes.vocabulary; ++token)
    names[size_t(token * size)] = kConstant;
  return names;
}

// What config.json says of layers, the model's or the drafter's.
JsonObject text_config(const AgreeingSizes& sizes, int64_t hidden, int64_t width, int64_t layers,
                       int64_t period) {
  JsonArray types;
  for (int64_t i = 0; i < layers; ++i)
    types.emplace_back((i + 1) % period == 0 ? "full_attention" : "sliding_attention");
  return {{"model_type", "gemma4_text"},
          {"vocab_size", sizes.vocabulary},
          {"hidden_size", hidden},
          {"intermediate_size", width},
          {"num_hidden_layers", layers},
          {"layer_types", std::move(types)},
          {"num_attention_heads", sizes.q_heads},
          {"num_key_value_heads", sizes.kv_heads},
          {"head_dim", sizes.head_dim},
          {"global_head_dim", 2 * sizes.head_dim},
          {"sliding_window", sizes.window},
          {"max_position_embeddings", 8192}};
}

struct LayerToAdd {
  std::string prefix;
  int64_t hidden, width;
  int64_t head_dim;
  bool own_keys;
  float branch;  // the size of what attention and MLP add
};

void add_attention(Files& files, const AgreeingSizes& sizes, const LayerToAdd& layer) {
  const std::string prefix = layer.prefix + "self_attn.";
  const int64_t q_size = sizes.q_heads * layer.head_dim, kv_size = sizes.kv_heads * layer.head_dim;
  files.add_random(prefix + "q_proj", q_size, layer.hidden);
  files.add_random(prefix + "o_proj", layer.hidden, q_size);
  // Scores are not divided by the size of heads, so that queries must be short.
  files.add_scale(prefix + "q_norm", layer.head_dim, 1 / std::sqrt(float(layer.head_dim)));
  if (!layer.own_keys) return;
  files.add_random(prefix + "k_proj", kv_size, layer.hidden);
  files.add_random(prefix + "v_proj", kv_size, layer.hidden);
  files.add_scale(prefix + "k_norm", layer.head_dim, 1);
}

void add_layer_but_mlp(Files& files, const AgreeingSizes& sizes, const LayerToAdd& layer) {
  for (const char* norm : {"input_layernorm", "pre_feedforward_layernorm"})
    files.add_scale(layer.prefix + norm, layer.hidden, 1);
  files.add_branch_scale(layer.prefix + "post_attention_layernorm", layer.hidden, layer.branch);
  files.add(layer.prefix + "layer_scalar", {1}, {1});
  add_attention(files, sizes, layer);
}

void add_random_mlp(Files& files, const LayerToAdd& layer) {
  files.add_branch_scale(layer.prefix + "post_feedforward_layernorm", layer.hidden, layer.branch);
  files.add_random(layer.prefix + "mlp.gate_proj", layer.width, layer.hidden);
  files.add_random(layer.prefix + "mlp.up_proj", layer.width, layer.hidden);
  files.add_random(layer.prefix + "mlp.down_proj", layer.hidden, layer.width);
}

// Copies the second half of the hidden state to the first, three times as large as what is there.
void add_copying_mlp(Files& files, const LayerToAdd& layer, float embedding_size) {
  const int64_t half = layer.hidden / 2;
  check(layer.width >= half, "an MLP of ", layer.width, " cannot copy ", half, " values");
  Matrix gate = files.random(layer.width, layer.hidden, 0.1f);
  Matrix up = files.random(layer.width, layer.hidden, 0.1f);
  Matrix down = files.random(layer.hidden, layer.width, 0.1f);
  for (int64_t i = 0; i < half; ++i) {
    gate[size_t(i * layer.hidden)] += 3;
    up[size_t(i * layer.hidden + half + i)] += 1;
    down[size_t(i * layer.width + i)] += 1;
  }
  // The copy fills half of what is normalised.
  files.add_branch_scale(layer.prefix + "post_feedforward_layernorm", layer.hidden,
                         3 * embedding_size / std::sqrt(2.0f));
  files.add(layer.prefix + "mlp.gate_proj.weight", {layer.width, layer.hidden}, gate);
  files.add(layer.prefix + "mlp.up_proj.weight", {layer.width, layer.hidden}, up);
  files.add(layer.prefix + "mlp.down_proj.weight", {layer.hidden, layer.width}, down);
}

void write_model(const fs::path& folder, const AgreeingSizes& sizes, const Matrix& names) {
  constexpr int64_t kPeriod = 6;
  const int64_t half = sizes.hidden / 2;
  const float embedding_size = std::sqrt(float(sizes.hidden));  // as the model scales it
  const std::vector<int64_t> next = successors(sizes.vocabulary);
  Matrix embedding;
  for (int64_t token = 0; token < sizes.vocabulary; ++token)
    for (const int64_t named : {token, next[size_t(token)]})
      embedding.insert(embedding.end(), names.begin() + named * half,
                       names.begin() + (named + 1) * half);
  Files files(3);
  files.add("model.embed_tokens.weight", {sizes.vocabulary, sizes.hidden}, embedding);
  // The head sees the first half alone, and the logit of the right token, which is about the square
  // of a name times this, is well below the soft cap.
  Matrix final_scale(size_t(sizes.hidden), 0.0f);
  std::fill_n(final_scale.begin(), half, 20 / float(half));
  files.add("model.norm.weight", {sizes.hidden}, final_scale);
  for (int64_t i = 0; i < sizes.layers; ++i) {
    const bool full = (i + 1) % kPeriod == 0 || i + 1 == sizes.layers;
    // Together the branches are about half as large as the embedding.
    const LayerToAdd layer{.prefix = cat("model.layers.", i, "."),
                           .hidden = sizes.hidden,
                           .width = sizes.width,
                           .head_dim = full ? 2 * sizes.head_dim : sizes.head_dim,
                           .own_keys = true,
                           .branch = embedding_size / 2 / std::sqrt(2 * float(sizes.layers))};
    add_layer_but_mlp(files, sizes, layer);
    if (i + 1 < sizes.layers) {
      add_random_mlp(files, layer);
    } else {
      add_copying_mlp(files, layer, embedding_size);
    }
  }
  JsonObject config = text_config(sizes, sizes.hidden, sizes.width, sizes.layers, kPeriod);
  config["final_logit_softcapping"] = 30;
  files.write(folder, config);
}

void write_drafter(const fs::path& folder, const AgreeingSizes& sizes, Matrix names) {
  const int64_t half = sizes.hidden / 2;
  for (int64_t token = 0; token + 1 < sizes.vocabulary; token += 2 * sizes.mixed_up_every)
    std::swap_ranges(names.begin() + token * half, names.begin() + (token + 1) * half,
                     names.begin() + (token + 1) * half);
  Files files(4);
  Matrix before = files.random(half, 2 * sizes.hidden, 0.1f);
  for (int64_t i = 0; i < half; ++i) before[size_t(i * 2 * sizes.hidden + half + i)] += 1;
  files.add("pre_projection.weight", {half, 2 * sizes.hidden}, before);
  files.add_random("post_projection", sizes.hidden, half);
  files.add("model.embed_tokens.weight", {sizes.vocabulary, half}, names);
  files.add_scale("model.norm", half, 1);
  for (int64_t i = 0; i < kDrafterLayers; ++i) {
    const bool full = i + 1 == kDrafterLayers;
    const LayerToAdd layer{.prefix = cat("model.layers.", i, "."),
                           .hidden = half,
                           .width = sizes.drafter_width,
                           .head_dim = full ? 2 * sizes.head_dim : sizes.head_dim,
                           .own_keys = false,
                           .branch = std::sqrt(float(sizes.hidden)) / 4};
    add_layer_but_mlp(files, sizes, layer);
    add_random_mlp(files, layer);
  }
  files.write(folder, {{"model_type", "gemma4_assistant"},
                       {"backbone_hidden_size", sizes.hidden},
                       {"text_config", text_config(sizes, half, sizes.drafter_width, kDrafterLayers,
                                                   kDrafterLayers)}});
}

}  // namespace

void write_agreeing_gemma(const fs::path& folder, const AgreeingSizes& sizes) {
  const Matrix names = make_names(sizes);
  write_model(folder, sizes, names);
  write_drafter(folder.string() + "-assistant", sizes, names);
}

}  // namespace slip
