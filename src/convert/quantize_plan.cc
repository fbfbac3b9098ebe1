#include "convert/quantize_plan.h"

#include <algorithm>

#include "checkpoint/safetensors_file.h"
#include "convert/mtp.h"
#include "convert/plain_matrix.h"
#include "quant/weight.h"

namespace slip {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr int64_t kSideMultiple = 32;  // AutoRound's rule for both sides

// MTP tensors are of one class; what they are within their layer decides what they may become.
TensorClass class_within_layer(std::string_view name) {
  const size_t mtp = name.find("mtp.");
  return class_of_tensor(mtp == std::string_view::npos ? name : name.substr(mtp + 4));
}

bool may_be_quantized(TensorClass tensor_class) {
  switch (tensor_class) {
    case TensorClass::attention:
    case TensorClass::delta_net:
    case TensorClass::gates:
    case TensorClass::routed_experts:
    case TensorClass::shared_experts:
    case TensorClass::mlp:
    case TensorClass::head: return true;
    case TensorClass::embedding:
    case TensorClass::router:
    case TensorClass::norms:
    case TensorClass::mtp:
    case TensorClass::vision:
    case TensorClass::other: return false;
  }
  unreachable("TensorClass");
}

StoredForm form_of(const PlannedTensor& tensor, const QuantizeOptions& options) {
  const std::string& name = tensor.source.name;
  if (!tensor.is_matrix() || !plain_dtype(tensor.source.stored->type)) return StoredForm::plain;
  const TensorClass within = class_within_layer(name);
  const auto chosen = options.choices.find(class_of_tensor(name));
  if (chosen == options.choices.end() || !may_be_quantized(within)) return StoredForm::plain;
  // The gates of an MTP layer are gates all the same.
  if (within == TensorClass::gates && !options.choices.contains(within)) return StoredForm::plain;
  const int64_t rows = tensor.source.shape[0], columns = tensor.source.shape[1];
  if (rows % kSideMultiple != 0 || columns % kSideMultiple != 0) return StoredForm::plain;
  if (chosen->second == StoredForm::int4 && columns % options.group != 0) return StoredForm::plain;
  return chosen->second;
}

// In the order in which they lie in the files, so that the disk is read from front to back.
std::vector<const StoredTensor*> in_file_order(const Checkpoint& source) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : source.tensors()) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    if (a->file != b->file) return a->path() < b->path();
    return a->data.data() < b->data.data();
  });
  return order;
}

Status refuse_quantized(const Checkpoint& source) {
  for (const StoredTensor& tensor : source.tensors())
    if (tensor.name.ends_with(".qweight") || tensor.type == StoredType::f8_e4m3)
      return error(tensor.path().string(), ": tensor ", tensor.name, " is quantized already (",
                   stored_type_name(tensor.type),
                   "); quantize the BF16 checkpoint it was made from");
  return {};
}

uint64_t stored_bytes(const PlannedTensor& tensor, int group) {
  uint64_t bytes = 0;
  for (const NewTensorShape& made : new_tensors(tensor, group))
    bytes += TensorDeclaration{made.name, made.type, made.shape}.bytes();
  return bytes;
}

std::string shard_name(size_t number, size_t count) {
  char name[64];
  std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", number, count);
  return name;
}

}  // namespace

const char* name_of(StoredForm form) {
  switch (form) {
    case StoredForm::plain: return "16 bit";
    case StoredForm::int4: return "INT4";
    case StoredForm::fp8: return "FP8";
  }
  unreachable("StoredForm");
}

FormChoices autoround_choices() {
  return {{TensorClass::attention, StoredForm::int4},
          {TensorClass::delta_net, StoredForm::int4},
          {TensorClass::mlp, StoredForm::int4},
          {TensorClass::routed_experts, StoredForm::int4}};
}

FormChoices fp8_choices() {
  return {{TensorClass::attention, StoredForm::fp8},
          {TensorClass::delta_net, StoredForm::fp8},
          {TensorClass::mlp, StoredForm::fp8},
          {TensorClass::routed_experts, StoredForm::fp8},
          {TensorClass::shared_experts, StoredForm::fp8},
          {TensorClass::mtp, StoredForm::fp8}};
}

std::string PlannedTensor::module() const {
  return source.name.substr(0, source.name.size() - kWeight.size());
}

bool PlannedTensor::is_matrix() const {
  return source.shape.size() == 2 && source.name.ends_with(kWeight);
}

std::vector<NewTensorShape> new_tensors(const PlannedTensor& tensor, int group) {
  const SplitTensor& source = tensor.source;
  switch (tensor.form) {
    case StoredForm::plain: return {{source.name, source.stored->type, source.shape}};
    case StoredForm::int4: {
      const int64_t rows = source.shape[0], columns = source.shape[1];
      const std::string module = tensor.module();
      return {{module + ".qweight", StoredType::i32, {columns / 8, rows}},
              {module + ".qzeros", StoredType::i32, {columns / group, rows / 8}},
              {module + ".scales", StoredType::f16, {columns / group, rows}}};
    }
    case StoredForm::fp8: {
      const auto blocks = [](int64_t side) { return (side + kFp8Block - 1) / kFp8Block; };
      return {{source.name, StoredType::f8_e4m3, source.shape},
              {source.name + "_scale_inv",
               StoredType::bf16,
               {blocks(source.shape[0]), blocks(source.shape[1])}}};
    }
  }
  unreachable("StoredForm");
}

Result<QuantizePlan> plan_quantization(const Checkpoint& source, const QuantizeOptions& options) {
  SLIP_TRY_STATUS(refuse_quantized(source));
  QuantizePlan plan;
  plan.group = options.group;
  plan.choices = options.choices;
  std::vector<PlannedTensor> main, apart;
  uint64_t total = 0;
  for (SplitTensor& split : split_fused_experts(in_file_order(source))) {
    PlannedTensor tensor{std::move(split)};
    tensor.form = form_of(tensor, options);
    const TensorClass tensor_class = class_of_tensor(tensor.source.name);
    if (tensor.is_matrix()) ++plan.counts[tensor_class][tensor.form];
    plan.source_bytes += tensor.source.bytes().size();
    if (options.mtp_apart && tensor_class == TensorClass::mtp) {
      apart.push_back(std::move(tensor));
    } else {
      total += stored_bytes(tensor, plan.group);
      main.push_back(std::move(tensor));
    }
  }
  // Files of about equal size; a matrix and its scales stay together.
  const size_t count =
      size_t(std::max<uint64_t>((total + options.file_bytes - 1) / options.file_bytes, 1));
  for (size_t i = 1; i <= count; ++i) plan.files.push_back({shard_name(i, count), {}});
  uint64_t at = 0;
  for (PlannedTensor& tensor : main) {
    const uint64_t bytes = stored_bytes(tensor, plan.group);
    const size_t file = total == 0 ? 0 : size_t(double(at) / double(total) * double(count));
    plan.files[std::min(file, count - 1)].tensors.push_back(std::move(tensor));
    at += bytes;
  }
  if (!apart.empty()) plan.files.push_back({std::string(kMtpFile), std::move(apart)});
  return plan;
}

}  // namespace slip
