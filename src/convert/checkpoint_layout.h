// The files of a checkpoint around its tensors: the index, and what is simply taken along.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "convert/output_folder.h"

namespace slip {

// Tensors are copied in pieces, so that progress is seen and Ctrl-C is heard.
inline constexpr size_t kCopyPiece = 16 << 20;

// Which tensor is in which file, and how large it is.
struct IndexedTensor {
  std::string file;
  uint64_t bytes = 0;
};
using TensorIndex = std::map<std::string, IndexedTensor>;

// model.safetensors.index.json as Hugging Face writes it.
std::string index_text(const TensorIndex& index);

// Of all tensors that a checkpoint holds, also those that its own index forgot.
TensorIndex index_of(const Checkpoint& checkpoint);

// Whether a folder's config.json and index are just these.
bool is_described_by(const std::filesystem::path& folder, const std::string& config,
                     const TensorIndex& index);

// How much of tensors each file holds.
std::map<std::string, uint64_t> bytes_of_files(const TensorIndex& index);

// As config.json is usually written.
std::string json_file_text(const JsonObject& object);

// The files beside the weights that belong to a model whatever its weights are: tokenizer,
// templates, notes. Not weights, not indexes, not hidden files, and not those named in `but`.
Result<std::vector<std::filesystem::path>> companion_files(const std::filesystem::path& folder,
                                                           std::vector<std::string> but);

// Copies them: they are small, and a person may want to change one.
Status adopt_companions(const std::filesystem::path& folder, const std::vector<std::string>& but,
                        const OutputFolder& output);

}  // namespace slip
