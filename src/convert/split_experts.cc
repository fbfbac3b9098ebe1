#include "convert/split_experts.h"

#include "base/text.h"

namespace slip {
namespace {

constexpr std::string_view kGateUp = ".experts.gate_up_proj";
constexpr std::string_view kDown = ".experts.down_proj";

}  // namespace

std::span<const std::byte> SplitTensor::bytes() const {
  size_t size = size_t(bytes_per_value(stored->type));
  for (const int64_t dim : shape) size *= size_t(dim);
  const int64_t columns = shape.empty() ? 1 : shape.back();
  const size_t row = size_t(columns) * size_t(bytes_per_value(stored->type));
  return stored->data.subspan(size_t(first_row) * row, size);
}

std::vector<SplitTensor> split_fused_experts(const std::vector<const StoredTensor*>& tensors) {
  std::vector<SplitTensor> result;
  for (const StoredTensor* tensor : tensors) {
    const bool gate_up = tensor->name.ends_with(kGateUp), down = tensor->name.ends_with(kDown);
    if (tensor->shape.size() != 3 || (!gate_up && !down) || (gate_up && tensor->shape[1] % 2)) {
      result.push_back({tensor->name, tensor->shape, tensor});
      continue;
    }
    const int64_t rows = tensor->shape[1], columns = tensor->shape[2];
    const std::string stem = tensor->name.substr(0, tensor->name.rfind('.') + 1);
    for (int64_t expert = 0; expert < tensor->shape[0]; ++expert) {
      const std::string prefix = cat(stem, expert, ".");
      const int64_t first = expert * rows;
      if (down) {
        result.push_back({prefix + "down_proj.weight", {rows, columns}, tensor, first});
        continue;
      }
      const int64_t half = rows / 2;
      result.push_back({prefix + "gate_proj.weight", {half, columns}, tensor, first});
      result.push_back({prefix + "up_proj.weight", {half, columns}, tensor, first + half});
    }
  }
  return result;
}

}  // namespace slip
