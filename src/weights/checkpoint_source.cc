#include "weights/checkpoint_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/fp8_block.h"
#include "quant/gptq.h"
#include "quant/number_formats.h"
#include "weights/finite.h"

namespace slip {
namespace {

using Dims = std::vector<int64_t>;

bool is_float(StoredType type) {
  return type == StoredType::f32 || type == StoredType::bf16 || type == StoredType::f16;
}

Error wrong_shape(const StoredTensor& tensor, const Dims& expected) {
  return error(tensor.path().string(), ": tensor ", tensor.name, ": the model needs shape ",
               describe_shape(expected), ", the file has ", describe_shape(tensor.shape));
}

Error wrong_type(const StoredTensor& tensor, const char* expected) {
  return error(tensor.path().string(), ": tensor ", tensor.name, ": expected ", expected,
               ", the file has ", stored_type_name(tensor.type));
}

WeightFormat plain_format(StoredType type) {
  switch (type) {
    case StoredType::f32: return WeightFormat::f32;
    case StoredType::bf16: return WeightFormat::bf16;
    case StoredType::f16: return WeightFormat::f16;
    default: fail_check("plain_format of an integer type", SourceLocation::current());
  }
}

// "X.experts.7.gate_proj" -> where a fused file keeps it: tensor "X.experts.gate_up_proj", expert
// 7, first half of its rows.
struct FusedExpert {
  std::string tensor;
  int64_t expert = 0;
  bool second_half = false;
  bool halved = false;  // gate and up share a tensor
};

std::optional<FusedExpert> fused_expert(const std::string& module) {
  const size_t at = module.rfind(".experts.");
  if (at == std::string::npos) return std::nullopt;
  const size_t number = at + std::strlen(".experts.");
  const size_t dot = module.find('.', number);
  if (dot == std::string::npos) return std::nullopt;
  FusedExpert fused;
  for (size_t i = number; i < dot; ++i) {
    if (module[i] < '0' || module[i] > '9') return std::nullopt;
    fused.expert = fused.expert * 10 + (module[i] - '0');
  }
  const std::string stem = module.substr(0, number);
  const std::string projection = module.substr(dot + 1);
  if (projection == "down_proj") {
    fused.tensor = stem + "down_proj";
  } else if (projection == "gate_proj" || projection == "up_proj") {
    fused.tensor = stem + "gate_up_proj";
    fused.halved = true;
    fused.second_half = projection == "up_proj";
  } else {
    return std::nullopt;
  }
  return fused;
}

// The tensors of an int4 matrix, in one read where they lie side by side, as they usually do.
struct StoredGptq {
  const StoredTensor &qweight, &scales, &qzeros;
};
GptqTensors fetch_together(const StoredGptq& stored, DiskRoom& room) {
  const auto& [qweight, scales, qzeros] = stored;
  const auto end_of = [](const StoredTensor& tensor) {
    return tensor.data.data() + tensor.data.size();
  };
  const std::byte* begin = std::min({qweight.data.data(), scales.data.data(), qzeros.data.data()});
  const std::byte* end = std::max({end_of(qweight), end_of(scales), end_of(qzeros)});
  const bool one_file = scales.file == qweight.file && qzeros.file == qweight.file;
  const size_t bytes = qweight.data.size() + scales.data.size() + qzeros.data.size();
  if (!one_file || size_t(end - begin) > bytes + bytes / 8)
    return {qweight.file->fetch(qweight.data, room), scales.data, qzeros.data};
  const std::span<const std::byte> all = qweight.file->fetch({begin, end}, room);
  const auto part = [&](const StoredTensor& tensor) {
    return all.subspan(size_t(tensor.data.data() - begin), tensor.data.size());
  };
  return {part(qweight), part(scales), part(qzeros)};
}

float widen(StoredType type, const std::byte* data, size_t index) {
  uint16_t half;
  switch (type) {
    case StoredType::f32: {
      float value;
      std::memcpy(&value, data + index * 4, 4);
      return value;
    }
    case StoredType::bf16: std::memcpy(&half, data + index * 2, 2); return bf16_to_float(half);
    case StoredType::f16: std::memcpy(&half, data + index * 2, 2); return f16_to_float(half);
    default: fail_check("widen of an integer type", SourceLocation::current());
  }
}

}  // namespace

CheckpointSource::CheckpointSource(const Checkpoint& checkpoint,
                                   std::vector<std::string> ignored_prefixes)
    : checkpoint_(checkpoint), ignored_prefixes_(std::move(ignored_prefixes)) {}

const StoredTensor* CheckpointSource::use(const std::string& name) {
  const StoredTensor* tensor = checkpoint_.find(name);
  if (tensor) {
    const std::lock_guard lock(mutex_);
    used_.insert(name);
  }
  return tensor;
}

void CheckpointSource::count_expert(const StoredTensor& tensor, int64_t expert) {
  const std::lock_guard lock(mutex_);
  int64_t& experts = experts_used_[tensor.name];
  experts = std::max(experts, expert + 1);
}

Result<CheckpointSource::PlainMatrix> CheckpointSource::find_plain(const std::string& module,
                                                                   int64_t out, int64_t in) {
  if (const StoredTensor* tensor = use(module + ".weight")) {
    if (tensor->shape != Dims{out, in}) return wrong_shape(*tensor, {out, in});
    return PlainMatrix{tensor, 0};
  }
  if (const std::optional<FusedExpert> fused = fused_expert(module)) {
    if (const StoredTensor* tensor = use(fused->tensor)) {
      const int64_t rows = fused->halved ? 2 * out : out;
      const Dims& shape = tensor->shape;
      if (shape.size() != 3 || shape[0] <= fused->expert || shape[1] != rows || shape[2] != in)
        return wrong_shape(*tensor,
                           {std::max(fused->expert + 1, shape.empty() ? 0 : shape[0]), rows, in});
      if (!is_float(tensor->type)) return wrong_type(*tensor, "BF16, F16 or F32");
      count_expert(*tensor, fused->expert);
      const int64_t first_row = fused->expert * rows + (fused->second_half ? out : 0);
      return PlainMatrix{tensor, size_t(first_row * in) * size_t(bytes_per_value(tensor->type))};
    }
    return error(checkpoint_.folder().string(), ": tensor ", module, ".weight is missing (nor is ",
                 "there a ", module, ".qweight or a fused ", fused->tensor, ")");
  }
  return error(checkpoint_.folder().string(), ": tensor ", module,
               ".weight is missing (nor is there a ", module, ".qweight); the model needs shape ",
               describe_shape(Dims{out, in}));
}

Result<WeightInfo> CheckpointSource::describe(const std::string& module, int64_t out, int64_t in) {
  if (checkpoint_.find(module + ".qweight")) return describe_int4(module, out, in);
  SLIP_TRY(const PlainMatrix matrix, find_plain(module, out, in));
  const StoredTensor& tensor = *matrix.tensor;
  if (tensor.type == StoredType::f8_e4m3) return describe_fp8(module, tensor);
  if (!is_float(tensor.type)) return wrong_type(tensor, "BF16, F16, F32 or F8_E4M3");
  return WeightInfo{plain_format(tensor.type), out, in, 0};
}

Result<WeightInfo> CheckpointSource::describe_int4(const std::string& module, int64_t out,
                                                   int64_t in) {
  const StoredTensor& qweight = *use(module + ".qweight");
  const StoredTensor* scales = use(module + ".scales");
  const StoredTensor* qzeros = use(module + ".qzeros");
  if (!scales || !qzeros)
    return error(qweight.path().string(), ": tensor ", qweight.name, " has no ", module,
                 scales ? ".qzeros" : ".scales", " beside it");
  if (qweight.type != StoredType::i32) return wrong_type(qweight, "I32");
  if (scales->type != StoredType::f16) return wrong_type(*scales, "F16");
  if (qzeros->type != StoredType::i32) return wrong_type(*qzeros, "I32");
  if (qweight.shape != Dims{in / 8, out} || in % 8 != 0) return wrong_shape(qweight, {in / 8, out});
  if (scales->shape.size() != 2 || scales->shape[1] != out || scales->shape[0] < 1 ||
      in % scales->shape[0] != 0)
    return wrong_shape(*scales, {in / 128, out});
  const int64_t groups = scales->shape[0], group = in / groups;
  if (group != 32 && group != 64 && group != 128)
    return error(scales->path().string(), ": tensor ", scales->name,
                 ": groups of 32, 64 or 128 inputs are supported, the file has groups of ", group);
  if (qzeros->shape != Dims{groups, out / 8} || out % 8 != 0)
    return wrong_shape(*qzeros, {groups, out / 8});
  if (const StoredTensor* g_idx = use(module + ".g_idx")) {
    if (g_idx->type != StoredType::i32) return wrong_type(*g_idx, "I32");
    if (g_idx->shape != Dims{in}) return wrong_shape(*g_idx, {in});
    Status trivial = check_trivial_g_idx(g_idx->data, int(group));
    if (!trivial.ok())
      return std::move(trivial).failure().in(cat(g_idx->path().string(), ": tensor ", g_idx->name));
  }
  return WeightInfo{WeightFormat::int4_group, out, in, int(group)};
}

Result<WeightInfo> CheckpointSource::describe_fp8(const std::string& module,
                                                  const StoredTensor& weight) {
  const int64_t out = weight.shape[0], in = weight.shape[1];
  const StoredTensor* scales = use(module + ".weight_scale_inv");
  if (!scales)
    return error(weight.path().string(), ": tensor ", weight.name, " is F8_E4M3 but there is no ",
                 module, ".weight_scale_inv beside it");
  const Dims expected{(out + kFp8Block - 1) / kFp8Block, (in + kFp8Block - 1) / kFp8Block};
  if (scales->shape != expected) return wrong_shape(*scales, expected);
  if (!is_float(scales->type)) return wrong_type(*scales, "BF16, F16 or F32");
  return WeightInfo{WeightFormat::fp8_block, out, in, kFp8Block};
}

uint64_t CheckpointSource::place(const std::string& module) const {
  const StoredTensor* packed = checkpoint_.find(module + ".qweight");
  const StoredTensor* tensor = packed ? packed : checkpoint_.find(module + ".weight");
  // Files are mapped, so that addresses are places in files. Parts of a fused tensor are asked for
  // in their order already.
  return tensor ? reinterpret_cast<uintptr_t>(tensor->data.data()) : 0;
}

Status CheckpointSource::read(const std::string& module, const Weight& plain) {
  switch (plain.info.format) {
    case WeightFormat::int4_group: return read_int4(module, plain);
    case WeightFormat::fp8_block: return read_fp8(module, plain);
    case WeightFormat::f32:
    case WeightFormat::bf16:
    case WeightFormat::f16: return read_rows({module, plain.info, 0}, plain);
    case WeightFormat::int8_row: break;  // made at load, never stored
  }
  return error(module, ": checkpoints hold no ", name_of(plain.info.format), " weights");
}

Status CheckpointSource::read_rows(const MatrixRows& rows, const Weight& plain) {
  SLIP_TRY(const PlainMatrix matrix, find_plain(rows.module, rows.whole.out, rows.whole.in));
  const size_t before = plain.values.bytes() / size_t(plain.info.out) * size_t(rows.first);
  const auto data = matrix.tensor->data.subspan(matrix.offset + before, plain.values.bytes());
  const size_t width = bytes_per_value(plain.values.dtype);
  constexpr size_t kPiece = size_t{8} << 20;
  DiskRoom room;
  for (size_t at = 0; at < data.size(); at += kPiece) {
    const auto piece = data.subspan(at, std::min(kPiece, data.size() - at));
    const auto bytes = matrix.tensor->file->fetch(piece, room);
    std::memcpy(plain.values.data + at, bytes.data(), bytes.size());
    drop_pages(*matrix.tensor, piece);
    const int64_t first = int64_t(at / width), count = int64_t(bytes.size() / width);
    const View copied{plain.values.data + at, plain.values.dtype, {count}};
    if (const std::optional<int64_t> bad = first_not_finite(copied))
      return error(matrix.tensor->path().string(), ": tensor ", matrix.tensor->name, ": ",
                   rows.module, " is ",
                   widen(matrix.tensor->type, plain.values.data, size_t(first + *bad)),
                   " at output row ", rows.first + (first + *bad) / plain.info.in, ", input ",
                   (first + *bad) % plain.info.in, ", expected a finite number");
  }
  return {};
}

void CheckpointSource::drop_pages(const StoredTensor& tensor,
                                  std::span<const std::byte> part) const {
  checkpoint_.drop_pages(tensor, part, page_cache_);
}

std::span<const std::byte> CheckpointSource::mapped(const std::string& module,
                                                    const WeightInfo& info) {
  const Result<PlainMatrix> matrix = find_plain(module, info.out, info.in);
  if (!matrix.ok()) return {};
  const StoredTensor& tensor = *matrix.value().tensor;
  return tensor.data.subspan(matrix.value().offset,
                             size_t(info.out * info.in * bytes_per_value(tensor.type)));
}

Status CheckpointSource::read_int4(const std::string& module, const Weight& plain) {
  const StoredTensor& qweight = *checkpoint_.find(module + ".qweight");
  const StoredTensor& scales = *checkpoint_.find(module + ".scales");
  const StoredTensor& qzeros = *checkpoint_.find(module + ".qzeros");
  DiskRoom room;
  Status unpacked = unpack_gptq(fetch_together({qweight, scales, qzeros}, room), plain);
  if (!unpacked.ok())
    return std::move(unpacked).failure().in(cat(qweight.path().string(), ": tensor ", module));
  for (const StoredTensor* tensor : {&qweight, &scales, &qzeros}) drop_pages(*tensor, tensor->data);
  return {};
}

Status CheckpointSource::read_fp8(const std::string& module, const Weight& plain) {
  const StoredTensor& weight = *checkpoint_.find(module + ".weight");
  const StoredTensor& scales = *checkpoint_.find(module + ".weight_scale_inv");
  const DType scale_type = scales.type == StoredType::bf16  ? DType::bf16
                           : scales.type == StoredType::f16 ? DType::f16
                                                            : DType::f32;
  DiskRoom room;
  const std::span<const std::byte> codes = weight.file->fetch(weight.data, room);
  Status status = check_fp8_codes(codes, plain.info.in);
  if (!status.ok())
    return std::move(status).failure().in(cat(weight.path().string(), ": tensor ", weight.name));
  status = read_fp8_scales(scales.data, scale_type, plain);
  if (!status.ok())
    return std::move(status).failure().in(cat(scales.path().string(), ": tensor ", scales.name));
  std::memcpy(plain.values.data, codes.data(), codes.size());
  drop_pages(weight, weight.data);
  return {};
}

Status CheckpointSource::read_vector(const std::string& name, const Shape& shape,
                                     std::span<float> values) {
  const StoredTensor* tensor = use(name);
  Dims expected;
  for (int i = 0; i < shape.rank(); ++i) expected.push_back(shape[i]);
  if (!tensor)
    return error(checkpoint_.folder().string(), ": tensor ", name,
                 " is missing; the model needs shape ", describe_shape(expected));
  if (tensor->shape != expected) return wrong_shape(*tensor, expected);
  if (!is_float(tensor->type)) return wrong_type(*tensor, "BF16, F16 or F32");
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = widen(tensor->type, tensor->data.data(), i);
    if (!std::isfinite(values[i]))
      return error(tensor->path().string(), ": tensor ", name, ": value ", i, " is ", values[i],
                   ", expected a finite number");
  }
  return {};
}

std::optional<std::string> CheckpointSource::missing_matrix(const std::string& module) const {
  const auto missing = [&](std::initializer_list<const char*> parts) -> std::optional<std::string> {
    for (const char* part : parts)
      if (!checkpoint_.find(module + part)) return module + part;
    return std::nullopt;
  };
  if (checkpoint_.find(module + ".qweight")) return missing({".scales", ".qzeros"});
  if (const StoredTensor* weight = checkpoint_.find(module + ".weight"))
    return weight->type == StoredType::f8_e4m3 ? missing({".weight_scale_inv"}) : std::nullopt;
  const std::optional<FusedExpert> fused = fused_expert(module);
  if (fused && checkpoint_.find(fused->tensor)) return std::nullopt;
  return module + ".weight";
}

bool CheckpointSource::has_vector(const std::string& name) const {
  return checkpoint_.find(name) != nullptr;
}

Status CheckpointSource::check_all_used() {
  std::vector<std::string> extra;
  for (const StoredTensor& tensor : checkpoint_.tensors()) {
    if (used_.contains(tensor.name)) continue;
    bool ignored = false;
    for (const std::string& prefix : ignored_prefixes_) ignored |= tensor.name.starts_with(prefix);
    if (!ignored) extra.push_back(tensor.name);
  }
  for (const auto& [name, experts] : experts_used_)
    if (const StoredTensor& tensor = *checkpoint_.find(name); tensor.shape[0] != experts)
      return error(tensor.path().string(), ": tensor ", name, " has ", tensor.shape[0],
                   " experts, this model uses ", experts,
                   "; config.json and the files do not belong together");
  if (extra.empty()) return {};
  std::string names;
  for (size_t i = 0; i < extra.size() && i < 5; ++i) names += (i ? ", " : "") + extra[i];
  if (extra.size() > 5) names += ", ...";
  return error(checkpoint_.folder().string(), ": ", extra.size(),
               " tensors are in the files that this model does not use: ", names,
               "; config.json and the files do not belong together");
}

}  // namespace slip
