#include "checkpoint/safetensors_file.h"

namespace slip {
namespace {

Status check_sizes(std::span<const TensorToWrite> tensors) {
  for (const TensorToWrite& tensor : tensors) {
    int64_t bytes = bytes_per_value(tensor.type);
    for (const int64_t size : tensor.shape)
      if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
        return error("tensor ", tensor.name, ": bad shape ", describe_shape(tensor.shape));
    if (uint64_t(bytes) != tensor.data.size())
      return error("tensor ", tensor.name, ": ", stored_type_name(tensor.type), " ",
                   describe_shape(tensor.shape), " needs ", bytes, " bytes, found ",
                   tensor.data.size());
  }
  return {};
}

}  // namespace

Status write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                         std::string_view format) {
  if (auto status = check_sizes(tensors); !status.ok())
    return std::move(status).failure().in(path.string());
  std::vector<TensorDeclaration> declarations;
  for (const TensorToWrite& tensor : tensors)
    declarations.push_back({tensor.name, tensor.type, tensor.shape});
  SLIP_TRY(SafetensorsFile file, SafetensorsFile::create(path, declarations, format));
  for (size_t i = 0; i < tensors.size(); ++i) SLIP_TRY_STATUS(file.write(i, 0, tensors[i].data));
  return file.finish();
}

}  // namespace slip
