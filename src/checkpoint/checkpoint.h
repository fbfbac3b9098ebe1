// A folder of safetensors files, as published: maps the files and finds tensors by name.
//
// Which files are the model's. Indexes are often wrong (Intel's AutoRound files keep MTP in
// model_extra_tensors.safetensors, which their index does not list) and folders hold other things,
// so:
//   - a file that model.safetensors.index.json names always counts;
//   - so does one whose name starts with "model" or contains "mtp" or "extra";
//   - consolidated*.safetensors (Mistral's layout: the same weights under other names) and
//     adapter_*.safetensors (LoRA) never do, unless the index names them. They are not opened;
//   - any other file counts if its metadata names a format, as that of every saved model does, and
//     not if it has none, as dumped logits and goldens;
//   - if the rules above leave nothing, the files without a format count: a lone file may have any
//     name.
// Names that start with a dot are not looked at, nor are other indexes (*.index.with_mtp.json).
//
// Which copy of a tensor is used. The one in the file that the index names; without an index, or if
// the index does not list the tensor, the one in the last file by name. So a stray
// model.safetensors beside shards with an index is left alone; without an index it wins over the
// shards, as in transformers. Each such decision is in notes().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "checkpoint/stored_type.h"

namespace slip {

// Borrows from its Checkpoint. `data` is the file's own bytes: little-endian, row-major, and not
// necessarily aligned for its type.
struct StoredTensor {
  std::string name;
  StoredType type;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  const MappedFile* file;

  const std::filesystem::path& path() const { return file->path(); }
};

class Checkpoint {
 public:
  // Reads every header, no tensor. Missing shards, broken links and broken headers are errors.
  static Result<Checkpoint> open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }

  // Null if there is none.
  const StoredTensor* find(std::string_view name) const;

  // All tensors, sorted by name.
  std::span<const StoredTensor> tensors() const { return tensors_; }

  // What a person should know about the files, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

  // The sum over tensors(); copies that are not used do not count.
  uint64_t total_bytes() const { return total_bytes_; }

  // Call when `part` of a tensor's data has been repacked: its file pages then make room for
  // others.
  void drop_pages(const StoredTensor& tensor, std::span<const std::byte> part,
                  MappedFile::PageCache cache = MappedFile::PageCache::keep) const;

 private:
  Checkpoint() = default;

  std::filesystem::path folder_;
  std::vector<MappedFile> files_;  // never grows after open(): tensors_ point into it
  std::vector<StoredTensor> tensors_;
  std::vector<std::string> notes_;
  uint64_t total_bytes_ = 0;
};

}  // namespace slip
