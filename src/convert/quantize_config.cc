#include "convert/quantize_config.h"

#include <algorithm>

namespace slip {
namespace {

// The version whose files these are like.
constexpr const char* kAutoRoundVersion = "0.10.0";

template <class Visit>
void each_tensor(const QuantizePlan& plan, const Visit& visit) {
  for (const PlannedFile& file : plan.files)
    for (const PlannedTensor& tensor : file.tensors) visit(tensor);
}

// "model.language_model.layers" of "model.language_model.layers.0.mlp...."; empty outside layers.
std::string block_of(const std::string& name) {
  constexpr std::string_view kLayers = ".layers.";
  const size_t layers = name.find(kLayers);
  return layers == std::string::npos ? "" : name.substr(0, layers + kLayers.size() - 1);
}

// A router is no linear layer of its own in the reference implementation, so AutoRound never speaks
// of it.
bool is_linear_module(const PlannedTensor& tensor) {
  return tensor.is_matrix() && class_of_tensor(tensor.source.name) != TensorClass::router;
}

}  // namespace

JsonObject autoround_config(const QuantizePlan& plan, const CalibrationNote& note) {
  std::string block;
  each_tensor(plan, [&](const PlannedTensor& tensor) {
    if (tensor.form == StoredForm::int4 && block.empty() &&
        class_of_tensor(tensor.source.name) != TensorClass::mtp)
      block = block_of(tensor.source.name);
  });
  JsonObject extra;
  each_tensor(plan, [&](const PlannedTensor& tensor) {
    if (tensor.form != StoredForm::int4 && is_linear_module(tensor) &&
        block_of(tensor.source.name) == block)
      extra[tensor.module()] = JsonObject{{"bits", 16}, {"data_type", "fp"}};
  });
  JsonObject config{{"autoround_version", kAutoRoundVersion},
                    {"bits", 4},
                    {"data_type", "int"},
                    {"group_size", plan.group},
                    {"sym", true},
                    {"iters", note.sweeps},
                    {"block_name_to_quantize", block},
                    {"quant_method", "auto-round"},
                    {"packing_format", "auto_round:auto_gptq"}};
  if (note.sweeps > 0) {
    config["nsamples"] = note.samples;
    config["seqlen"] = note.length;
    config["dataset"] = note.dataset;
  }
  config["extra_config"] = std::move(extra);
  return config;
}

JsonObject fp8_config(const QuantizePlan& plan) {
  std::vector<std::string> kept;
  each_tensor(plan, [&](const PlannedTensor& tensor) {
    const bool wide = tensor.source.shape.size() >= 2 && tensor.source.name.ends_with(".weight");
    if (tensor.form == StoredForm::plain && wide) kept.push_back(tensor.module());
  });
  std::sort(kept.begin(), kept.end());
  return JsonObject{{"quant_method", "fp8"},
                    {"activation_scheme", "dynamic"},
                    {"weight_per_tensor", false},
                    {"act_per_tensor", false},
                    {"weight_block_size", {128, 128}},
                    {"modules_to_not_convert", JsonArray(kept.begin(), kept.end())}};
}

JsonObject hybrid_note(const QuantizePlan& plan) {
  int64_t int4 = 0, fp8 = 0;
  each_tensor(plan, [&](const PlannedTensor& tensor) {
    int4 += tensor.form == StoredForm::int4;
    fp8 += tensor.form == StoredForm::fp8;
  });
  if (int4 == 0 || fp8 == 0) return {};
  return JsonObject{{"description", "INT4 checkpoint with some matrices in FP8"},
                    {"fp8_modules", fp8},
                    {"fp8_weight_block_size", {128, 128}}};
}

}  // namespace slip
