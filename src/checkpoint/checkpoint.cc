#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "checkpoint/folder_files.h"
#include "checkpoint/index.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_merge.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

struct OpenedFile {
  MappedFile map;
  SafetensorsHeader header;
  FileRole role;
};

Result<std::optional<SafetensorsIndex>> read_index(const fs::path& folder) {
  const fs::path path = folder / kIndexName;
  // A dangling link is a failed download, not the absence of an index; hence not exists().
  std::error_code code;
  if (fs::symlink_status(path, code).type() == fs::file_type::not_found)
    return std::optional<SafetensorsIndex>();
  SLIP_TRY(const std::string text, read_text_file(path));
  SLIP_TRY(SafetensorsIndex index, parse_index(text, path.string()));
  return std::optional(std::move(index));
}

Result<OpenedFile> open_file(const fs::path& path, FileRole role) {
  Result<MappedFile> map = MappedFile::open(path);
  if (!map.ok()) {
    std::error_code code;
    const fs::path target = fs::read_symlink(path, code);
    const std::string hint = code ? "" : cat("; it is a link to ", target.string());
    return error(map.failure().message, hint);
  }
  const auto bytes = map.value().bytes();
  SLIP_TRY(SafetensorsHeader header, parse_safetensors_header(bytes, bytes.size(), path.string()));
  return OpenedFile{std::move(map).value(), std::move(header), role};
}

bool is_model_file(const OpenedFile& file) {
  return file.role == FileRole::weights || !file.header.format.empty();
}

// Takes the files that are not the model's out of the list and says so.
void set_aside_others(std::vector<OpenedFile>& files, std::vector<std::string>& notes) {
  if (std::none_of(files.begin(), files.end(), is_model_file)) return;
  for (const OpenedFile& file : files)
    if (!is_model_file(file))
      notes.push_back(
          cat(file.map.path().filename().string(),
              " has no format in its metadata, so it is not part of the model; not used"));
  std::erase_if(files, [](const OpenedFile& file) { return !is_model_file(file); });
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const fs::path& folder) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  SLIP_TRY(const std::vector<std::string> names, list_safetensors(folder));
  SLIP_TRY(const std::optional<SafetensorsIndex> index, read_index(folder));
  const std::vector<std::string> index_files = index ? index->files : std::vector<std::string>();
  SLIP_TRY_STATUS(index ? check_index_files(folder, names, index_files)
                        : check_shard_numbers(folder, names));

  std::vector<OpenedFile> files;
  for (const std::string& name : names) {
    const FileRole role = role_of_file(name, index_files);
    if (role == FileRole::not_weights) {
      checkpoint.notes_.push_back(cat(name, " is not part of the model; not used"));
      continue;
    }
    SLIP_TRY(OpenedFile file, open_file(folder / name, role));
    files.push_back(std::move(file));
  }
  if (files.empty())
    return error(folder.string(), ": expected a model's weights (model*.safetensors), found only ",
                 names.front());
  set_aside_others(files, checkpoint.notes_);

  checkpoint.files_.reserve(files.size());
  std::vector<StoredTensor> found;
  for (OpenedFile& file : files) {
    checkpoint.files_.push_back(std::move(file.map));
    const MappedFile& map = checkpoint.files_.back();
    for (TensorEntry& entry : file.header.tensors)
      found.push_back({std::move(entry.name), entry.type, std::move(entry.shape),
                       map.bytes().subspan(entry.offset, entry.bytes), &map});
  }
  auto merged = merge_tensors(std::move(found), index ? &*index : nullptr);
  if (!merged.ok()) return std::move(merged).failure().in(folder.string());
  checkpoint.tensors_ = std::move(merged.value().tensors);
  std::move(merged.value().notes.begin(), merged.value().notes.end(),
            std::back_inserter(checkpoint.notes_));
  for (const StoredTensor& tensor : checkpoint.tensors_)
    checkpoint.total_bytes_ += tensor.data.size();
  return checkpoint;
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto place = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const StoredTensor& tensor, std::string_view n) { return tensor.name < n; });
  return place != tensors_.end() && place->name == name ? &*place : nullptr;
}

namespace {

size_t place_in_file(const StoredTensor& tensor, std::span<const std::byte> part) {
  return size_t(part.data() - tensor.file->bytes().data());
}

}  // namespace

void Checkpoint::drop_pages(const StoredTensor& tensor, std::span<const std::byte> part,
                            MappedFile::PageCache cache) const {
  tensor.file->drop_pages(place_in_file(tensor, part), part.size(), cache);
}

}  // namespace slip
