#include "models/common/text_config.h"

#include <algorithm>

namespace slip {
namespace {

constexpr int64_t kMaxHeadsPerKey = 128;  // what kernels are made for

// All layers together; the largest published siblings have 30,720. Weights are listed before any
// file is looked at, so that a longer list would take gigabytes because of a config.json alone.
constexpr int64_t kMaxExperts = int64_t{1} << 18;

// In published files of every family: training, token ids that generation_config.json and the
// tokenizer settle, how weights are stored, which their files say themselves, and what transformers
// writes into any config.
constexpr std::string_view kHarmlessKeys[] = {"attention_dropout",
                                              "initializer_range",
                                              "output_router_logits",
                                              "router_aux_loss_coef",
                                              "use_cache",
                                              "bos_token_id",
                                              "eos_token_id",
                                              "pad_token_id",
                                              "dtype",
                                              "torch_dtype",
                                              "quantization_config",
                                              "architectures",
                                              "transformers_version",
                                              "chunk_size_feed_forward",
                                              "id2label",
                                              "is_encoder_decoder",
                                              "label2id",
                                              "output_attentions",
                                              "output_hidden_states",
                                              "problem_type",
                                              "return_dict"};

// So many are named; a file may have any number.
constexpr size_t kNamedKeys = 8;

}  // namespace

void read_sizes(ConfigReader& text, int64_t usual_context, TextConfig& config) {
  config.vocabulary = text.require_int("vocab_size", 2, kMaxDim);  // a choice needs two
  config.hidden = text.require_int("hidden_size", 1, kMaxDim);
  config.max_context = text.int_or("max_position_embeddings", usual_context, 1);
  const double eps = text.double_or("rms_norm_eps", 1e-6);
  config.eps = float(eps);
  if (!(config.eps > 0 && config.eps < 1))
    text.fail("rms_norm_eps", cat("must be in (0, 1), found ", eps));
}

bool read_tied_head(ConfigReader& root, ConfigReader& text, bool usually) {
  const bool in_text = text.bool_or("tie_word_embeddings", usually);
  const bool at_top = root.bool_or("tie_word_embeddings", usually);
  return in_text == usually ? at_top : in_text;
}

std::vector<bool> read_full_layers(ConfigReader& text, const char* other, int64_t interval) {
  const int64_t count = text.require_int("num_hidden_layers", 1, 4096);
  std::vector<bool> full;
  if (!text.has("layer_types")) {
    for (int64_t i = 0; i < count; ++i) full.push_back((i + 1) % interval == 0);
    return full;
  }
  for (const std::string& type : text.require_string_list("layer_types")) {
    full.push_back(type == "full_attention");
    if (type != "full_attention" && type != other)
      text.fail("layer_types",
                cat("expected \"", other, "\" or \"full_attention\", found \"", type, "\""));
  }
  if (int64_t(full.size()) != count && !text.failed())
    text.fail("layer_types", cat("lists ", full.size(), " layers, num_hidden_layers is ", count));
  return full;
}

ExpertsConfig read_experts(ConfigReader& text, size_t layers, const char* top_k_key) {
  ExpertsConfig experts{};
  experts.experts = text.require_int("num_experts", 1, kMaxExperts);
  if (experts.experts * int64_t(layers) > kMaxExperts)
    text.fail("num_experts", cat("at most ", kMaxExperts, " in all layers together, found ",
                                 experts.experts, " in each of ", layers));
  experts.top_k = text.require_int(top_k_key, 1, experts.experts);
  experts.width = text.require_int("moe_intermediate_size", 1, kMaxDim);
  return experts;
}

void check_heads(ConfigReader& text, int64_t q_heads, int64_t kv_heads) {
  if (q_heads % kv_heads != 0)
    text.fail("num_key_value_heads",
              cat("must divide num_attention_heads (", q_heads, "), found ", kv_heads));
  if (q_heads / kv_heads > kMaxHeadsPerKey)
    text.fail("num_attention_heads", cat("at most ", kMaxHeadsPerKey, " per key head, found ",
                                         q_heads, " for ", kv_heads));
}

void check_rope(ConfigReader& rope, double theta, double share) {
  if (!(theta > 1)) rope.fail("rope_theta", cat("must exceed 1, found ", theta));
  if (!(share > 0 && share <= 1))
    rope.fail("partial_rotary_factor", cat("must be in (0, 1], found ", share));
}

std::vector<std::string> unknown_keys(const ConfigReader& text,
                                      std::vector<std::string_view> harmless) {
  harmless.insert(harmless.end(), std::begin(kHarmlessKeys), std::end(kHarmlessKeys));
  return text.unread_keys(harmless);
}

void warn_of_unknown_keys(const std::string& file, const TextConfig& config,
                          std::vector<std::string>& warnings) {
  const std::vector<std::string>& keys = config.unknown_keys;
  if (keys.empty()) return;
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(keys.size(), kNamedKeys); ++i)
    named.push_back(printable(keys[i]));
  if (keys.size() > kNamedKeys) named.push_back(cat(keys.size() - kNamedKeys, " more"));
  warnings.push_back(cat(file, " has keys that this program does not know: ", join(named, ", "),
                         "; they are ignored"));
}

ModelInfo model_info(const TextConfig& config, size_t layers, std::optional<DrafterKeys> drafter) {
  return {.family = config.family,
          .vocabulary = config.vocabulary,
          .hidden = config.hidden,
          .layers = int64_t(layers),
          .max_context = config.max_context,
          .experts = config.experts ? config.experts->experts : 0,
          .experts_per_token = config.experts ? config.experts->top_k : 0,
          .drafter = drafter};
}

void cover(const TextConfig& config, StepLimits& limits) {
  limits.hidden = std::max(limits.hidden, config.hidden);
  limits.widest_input = std::max(limits.widest_input, config.hidden);
  if (!config.experts) return;
  limits.top_k = config.experts->top_k;
  limits.experts = config.experts->experts;
  limits.expert_width = std::max(config.experts->width, config.experts->shared_width);
  limits.widest_input = std::max(limits.widest_input, limits.expert_width);
}

}  // namespace slip
