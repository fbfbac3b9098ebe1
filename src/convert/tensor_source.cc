#include "convert/tensor_source.h"

#include <algorithm>
#include <cstring>

namespace slip {

bool TensorSource::has(std::string_view name) const {
  return std::binary_search(names().begin(), names().end(), name);
}

Result<std::unique_ptr<FolderSource>> FolderSource::open(const std::filesystem::path& folder) {
  SLIP_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  return std::unique_ptr<FolderSource>(new FolderSource(std::move(checkpoint)));
}

FolderSource::FolderSource(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {
  for (const StoredTensor& tensor : checkpoint_.tensors()) names_.push_back(tensor.name);
}

std::string FolderSource::origin() const {
  const std::filesystem::path folder = checkpoint_.folder().lexically_normal();
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

Result<std::vector<SourceTensor>> FolderSource::describe(std::span<const std::string> names) {
  std::vector<SourceTensor> described;
  for (const std::string& name : names) {
    const StoredTensor* tensor = checkpoint_.find(name);
    check(tensor, "FolderSource::describe of ", name);
    described.push_back({name, tensor->type, tensor->shape, tensor->data.size()});
  }
  return described;
}

Status FolderSource::read(const SourceTensor& tensor, std::span<std::byte> into) {
  const StoredTensor* stored = checkpoint_.find(tensor.name);
  check(stored && stored->data.size() == into.size(), "FolderSource::read of ", tensor.name);
  std::memcpy(into.data(), stored->data.data(), into.size());
  checkpoint_.drop_pages(*stored, stored->data);
  return {};
}

}  // namespace slip
