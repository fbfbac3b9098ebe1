#include "convert/hybrid_plan.h"

#include <algorithm>

#include "quant/weight.h"

namespace slip {
namespace {

constexpr std::string_view kScales = ".weight_scale_inv";

bool is_plain(StoredType type) {
  return type == StoredType::bf16 || type == StoredType::f16 || type == StoredType::f32;
}

// Scales and zero points count with their matrix.
bool is_part_of_a_matrix(std::string_view name) {
  return name.ends_with(".qzeros") || name.ends_with(".scales") || name.ends_with(".g_idx") ||
         name.ends_with(kScales);
}

using NamesByKey = std::map<std::string_view, std::string_view, std::less<>>;

NamesByKey names_without_prefix(const TensorSource& source) {
  NamesByKey names;
  for (const std::string& name : source.names()) names.emplace(without_model_prefix(name), name);
  return names;
}

struct Match {
  const StoredTensor* tensor;  // of the INT4 checkpoint
  std::string weight, scales;  // names in the FP8 one
};

Status check_match(const Match& match, const SourceTensor& weight, const SourceTensor& scales,
                   const std::string& origin) {
  if (weight.type != StoredType::f8_e4m3)
    return error(origin, ": tensor ", weight.name, ": expected F8_E4M3 beside its scales, found ",
                 stored_type_name(weight.type));
  if (weight.shape != match.tensor->shape || weight.shape.size() != 2)
    return error("tensor ", match.tensor->name, ": the INT4 checkpoint has ",
                 describe_shape(match.tensor->shape), ", ", origin, " has ",
                 describe_shape(weight.shape), "; the two are not of the same model");
  const std::vector<int64_t> blocks = {(weight.shape[0] + kFp8Block - 1) / kFp8Block,
                                       (weight.shape[1] + kFp8Block - 1) / kFp8Block};
  if (scales.shape != blocks)
    return error(origin, ": tensor ", scales.name, ": expected ", describe_shape(blocks),
                 ", one scale per block of 128 x 128, found ", describe_shape(scales.shape));
  if (!is_plain(scales.type))
    return error(origin, ": tensor ", scales.name, ": expected BF16, F16 or F32, found ",
                 stored_type_name(scales.type));
  return {};
}

}  // namespace

const char* name_of(LeftBecause reason) {
  switch (reason) {
    case LeftBecause::int4_already: return "INT4 already";
    case LeftBecause::fp8_already: return "FP8 already";
    case LeftBecause::plain_in_both: return "not quantized in the FP8 checkpoint either";
    case LeftBecause::absent_in_fp8: return "not in the FP8 checkpoint";
    case LeftBecause::not_chosen: return "could be FP8, but its class was not chosen";
  }
  unreachable("LeftBecause");
}

uint64_t HybridPlan::bytes_before() const {
  uint64_t bytes = 0;
  for (const Replacement& replacement : replacements) bytes += replacement.bytes_before;
  return bytes;
}

uint64_t HybridPlan::bytes_after() const {
  uint64_t bytes = 0;
  for (const Replacement& one : replacements) bytes += one.weight.bytes + one.scales.bytes;
  return bytes;
}

std::map<TensorClass, int64_t> HybridPlan::replaced() const {
  std::map<TensorClass, int64_t> counts;
  for (const Replacement& replacement : replacements) ++counts[class_of_tensor(replacement.name)];
  return counts;
}

Result<HybridPlan> plan_hybrid(const Checkpoint& int4, TensorSource& fp8,
                               const std::set<TensorClass>& classes) {
  HybridPlan plan;
  const NamesByKey fp8_names = names_without_prefix(fp8);
  std::vector<Match> matches;
  for (const StoredTensor& tensor : int4.tensors()) {
    if (is_part_of_a_matrix(tensor.name)) continue;
    const TensorClass tensor_class = class_of_tensor(tensor.name);
    const auto leave = [&](LeftBecause reason) { ++plan.left[tensor_class][reason]; };
    const std::string_view key = without_model_prefix(tensor.name);
    const auto same = fp8_names.find(key);
    const auto scales = fp8_names.find(std::string(key) + "_scale_inv");
    if (tensor.name.ends_with(".qweight")) {
      leave(LeftBecause::int4_already);
    } else if (tensor.type == StoredType::f8_e4m3) {
      leave(LeftBecause::fp8_already);
    } else if (same == fp8_names.end()) {
      leave(LeftBecause::absent_in_fp8);
    } else if (scales == fp8_names.end() || !tensor.name.ends_with(".weight") ||
               !is_plain(tensor.type)) {
      leave(LeftBecause::plain_in_both);
    } else if (!classes.contains(tensor_class)) {
      leave(LeftBecause::not_chosen);
    } else {
      matches.push_back({&tensor, std::string(same->second), std::string(scales->second)});
    }
  }
  const bool has_int4 = std::ranges::any_of(
      int4.tensors(), [](const StoredTensor& tensor) { return tensor.name.ends_with(".qweight"); });
  if (!has_int4)
    return error(int4.folder().string(),
                 ": expected an INT4 checkpoint, found no INT4 matrix (*.qweight); slipstream "
                 "convert int4 makes one of 16 bits");
  std::vector<std::string> wanted;
  for (const Match& match : matches) {
    wanted.push_back(match.weight);
    wanted.push_back(match.scales);
  }
  SLIP_TRY(const std::vector<SourceTensor> found, fp8.describe(wanted));
  for (size_t i = 0; i < matches.size(); ++i) {
    const Match& match = matches[i];
    const SourceTensor &weight = found[2 * i], &scales = found[2 * i + 1];
    SLIP_TRY_STATUS(check_match(match, weight, scales, fp8.origin()));
    plan.replacements.push_back({match.tensor->name, weight, scales, match.tensor->data.size()});
  }
  plan.unused_fp8 = int64_t(fp8.names().size()) - 2 * int64_t(matches.size());
  return plan;
}

}  // namespace slip
