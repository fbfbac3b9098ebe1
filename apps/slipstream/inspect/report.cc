#include "slipstream/inspect/report.h"

#include <algorithm>

#include "checkpoint/checkpoint.h"

namespace slip {
namespace {

constexpr int64_t kContexts[] = {4096, 32768, 262144};

// The format a stored tensor belongs to: scales and zero points count with their matrix.
std::string stored_format(const StoredTensor& tensor) {
  for (const char* suffix : {".qweight", ".qzeros", ".scales", ".g_idx"})
    if (tensor.name.ends_with(suffix)) return "int4";
  if (tensor.name.ends_with(".weight_scale_inv")) return "fp8";
  switch (tensor.type) {
    case StoredType::bf16: return "bf16";
    case StoredType::f16: return "f16";
    case StoredType::f32: return "f32";
    case StoredType::f8_e4m3: return "fp8";
    case StoredType::f64:
    case StoredType::f8_e5m2:
    case StoredType::f8_e8m0:
    case StoredType::i64:
    case StoredType::i32:
    case StoredType::i16:
    case StoredType::i8:
    case StoredType::u64:
    case StoredType::u32:
    case StoredType::u16:
    case StoredType::u8:
    case StoredType::boolean: return std::string(stored_type_name(tensor.type));
  }
  unreachable("StoredType");
}

// The drafter is one class, whatever its files call it.
TensorClass class_of(const PlacedWeight& weight) {
  return weight.drafts ? TensorClass::mtp : class_of_tensor(weight.name);
}

Status add_stored(const InspectRequest& request, const ModelPlan& plan, InspectReport& report) {
  const auto add = [&](TensorClass of, const std::string& format, uint64_t bytes) {
    SizedTensors& sized = report.stored[of][format];
    ++sized.tensors;
    sized.bytes += bytes;
    report.stored_bytes += bytes;
  };
  if (!request.folder) {
    // Vectors are kept as f32 and published as bf16.
    for (const PlacedWeight& weight : plan.weights) {
      const bool vector = weight.info.format == WeightFormat::f32;
      add(class_of(weight), vector ? "bf16" : name_of(weight.info.format),
          vector ? 2 * uint64_t(weight.info.in) : plain_bytes(weight.info));
    }
    return {};
  }
  SLIP_TRY(const Checkpoint checkpoint, Checkpoint::open(*request.folder));
  for (const StoredTensor& tensor : checkpoint.tensors())
    add(class_of_tensor(tensor.name), stored_format(tensor), tensor.data.size());
  return {};
}

void add_weights(const ModelPlan& plan, InspectReport& report) {
  bool has_head = false;
  for (const PlacedWeight& weight : plan.weights) has_head |= class_of(weight) == TensorClass::head;
  const double routed_share =
      report.experts > 0 ? double(report.experts_per_token) / double(report.experts) : 1;
  double active_parameters = 0, active_bytes = 0;
  for (const PlacedWeight& weight : plan.weights) {
    const TensorClass tensor_class = class_of(weight);
    const auto parameters = uint64_t(weight.info.out) * uint64_t(weight.info.in);
    if (tensor_class == TensorClass::mtp) {
      report.mtp_bytes += weight.bytes;
      report.mtp_parameters += parameters;
      continue;
    }
    report.parameters += parameters;
    report.weight_bytes += weight.bytes;
    if (weight.info.out > 1) report.formats[weight.info.format] += weight.bytes;
    double share = 1;
    if (tensor_class == TensorClass::routed_experts) share = routed_share;
    // One row is looked up, unless the table is the head too. Tables that stay in their files take
    // no bytes.
    if (tensor_class == TensorClass::embedding && (has_head || weight.bytes == 0))
      share = 1.0 / double(weight.info.out);
    active_parameters += share * double(parameters);
    active_bytes += share * double(weight.bytes);
  }
  report.active_parameters = uint64_t(active_parameters);
  report.active_bytes_per_token = uint64_t(active_bytes);
}

}  // namespace

std::string path_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::int4_group:
    case WeightFormat::int8_row: return "int8 activations, integer dot products";
    case WeightFormat::f32:
    case WeightFormat::bf16:
    case WeightFormat::f16:
    case WeightFormat::fp8_block: return "f32 activations";
  }
  unreachable("WeightFormat");
}

Result<InspectReport> inspect_model(const InspectRequest& request, const Ops& ops) {
  InspectReport report;
  report.name = request.name;
  if (request.folder) report.folder = request.folder->string();
  SLIP_TRY(const ModelSource source, request.folder ? ModelSource::open(*request.folder)
                                                    : ModelSource::synthetic(request.name));
  SLIP_TRY(const ModelPlan plan, source.plan({.with_drafter = true}, ops));
  report.info = plan.info;
  report.has_mtp = source.can_draft();
  report.notes = source.notes();
  report.experts = plan.info.experts;
  report.experts_per_token = plan.info.experts_per_token;
  for (int64_t layer = 0; layer < plan.info.layers; ++layer) {
    const CacheSpec& spec = plan.cache_specs[size_t(layer)];
    report.delta_net_layers += std::holds_alternative<RecurrentSpec>(spec);
    report.attention_layers += std::holds_alternative<PagedKvSpec>(spec);
    report.window_layers += std::holds_alternative<WindowKvSpec>(spec);
    report.shared_layers += std::holds_alternative<SharedKvSpec>(spec);
  }
  SLIP_TRY_STATUS(add_stored(request, plan, report));
  add_weights(plan, report);

  report.activation_bytes = plan.activation_bytes;
  report.kv = request.kv;
  const auto specs = std::span(plan.cache_specs).first(size_t(plan.info.layers));
  const CacheCost cost = cache_cost(specs, {.kv = request.kv, .step_rows = ops.prompt_rows()});
  report.state_bytes = cost.bytes_per_sequence;
  for (const int64_t context : kContexts) {
    if (context > plan.info.max_context) continue;
    ContextNeed need{.context = context};
    need.kv = uint64_t(pages_for(context)) * cost.bytes_per_page;
    need.total = report.weight_bytes + report.activation_bytes + report.state_bytes + need.kv;
    report.needs.push_back(need);
  }
  return report;
}

}  // namespace slip
