#include "convert/checkpoint_layout.h"

#include <algorithm>

#include "base/files.h"
#include "checkpoint/index.h"

namespace slip {
namespace fs = std::filesystem;

std::string index_text(const TensorIndex& index) {
  uint64_t total = 0;
  JsonObject map;
  for (const auto& [name, tensor] : index) {
    total += tensor.bytes;
    map[name] = tensor.file;
  }
  return json_file_text(
      {{"metadata", JsonObject{{"total_size", total}}}, {"weight_map", std::move(map)}});
}

TensorIndex index_of(const Checkpoint& checkpoint) {
  TensorIndex index;
  for (const StoredTensor& tensor : checkpoint.tensors())
    index[tensor.name] = {tensor.path().filename().string(), tensor.data.size()};
  return index;
}

bool is_described_by(const fs::path& folder, const std::string& config, const TensorIndex& index) {
  const auto holds = [&](std::string_view name, const std::string& text) {
    const Result<std::string> found = read_text_file(folder / name);
    return found.ok() && found.value() == text;
  };
  return holds("config.json", config) && holds(kIndexName, index_text(index));
}

std::map<std::string, uint64_t> bytes_of_files(const TensorIndex& index) {
  std::map<std::string, uint64_t> files;
  for (const auto& [name, tensor] : index) files[tensor.file] += tensor.bytes;
  return files;
}

std::string json_file_text(const JsonObject& object) { return dump_json(object, 2) + "\n"; }

Result<std::vector<fs::path>> companion_files(const fs::path& folder,
                                              std::vector<std::string> but) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator();
       entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    const bool of_weights = name.ends_with(".safetensors") || name.ends_with(".bin") ||
                            name.find(".index.") != std::string::npos;
    if (name.starts_with('.') || of_weights || !entry->is_regular_file(code)) continue;
    if (std::find(but.begin(), but.end(), name) == but.end()) files.push_back(entry->path());
  }
  if (code) return error(folder.string(), ": cannot list: ", code.message());
  std::sort(files.begin(), files.end());
  return files;
}

Status adopt_companions(const fs::path& folder, const std::vector<std::string>& but,
                        const OutputFolder& output) {
  SLIP_TRY(const std::vector<fs::path> files, companion_files(folder, but));
  for (const fs::path& file : files)
    if (auto adopted = output.adopt(file, LinkWay::copy); !adopted.ok())
      return std::move(adopted).failure();
  return {};
}

}  // namespace slip
