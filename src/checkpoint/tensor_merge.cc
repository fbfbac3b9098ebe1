#include "checkpoint/tensor_merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "checkpoint/json_visitor.h"

namespace slip {
namespace {

std::string file_name(const StoredTensor& tensor) { return tensor.path().filename().string(); }

// "65 tensors (mtp.*) are", "1 tensor (lm_head.weight) is": enough for a person to know which.
std::string describe_names(const std::vector<std::string>& names) {
  if (names.size() == 1) return cat("1 tensor (", printable(names.front()), ") is");
  constexpr size_t kMostShown = 3;
  std::set<std::string> groups;
  for (const std::string& name : names) {
    const size_t dot = name.find('.');
    groups.insert(dot == std::string::npos ? name : name.substr(0, dot) + ".*");
    if (groups.size() > kMostShown) break;
  }
  std::string list;
  size_t shown = 0;
  for (const std::string& group : groups) {
    if (shown > 0) list += ", ";
    list += shown++ < kMostShown ? printable(group) : "...";
  }
  return cat(names.size(), " tensors (", list, ") are");
}

// Decisions about single tensors, gathered so that each kind gives one note per pair of files.
class Notes {
 public:
  void not_in_index(const StoredTensor& used) { add(Kind::not_in_index, used, ""); }
  void misplaced(const StoredTensor& used, const std::string& index_says) {
    add(Kind::misplaced, used, index_says);
  }
  void copy(const StoredTensor& used, const StoredTensor& unused, bool by_index) {
    add(by_index ? Kind::copy_by_index : Kind::copy_by_name, used, file_name(unused));
  }

  std::vector<std::string> sentences() const {
    std::vector<std::string> result;
    for (const auto& [key, names] : gathered_) {
      const auto& [kind, file, other] = key;
      result.push_back(sentence(kind, describe_names(names), file, other));
    }
    return result;
  }

 private:
  enum class Kind { not_in_index, misplaced, copy_by_index, copy_by_name };

  static std::string sentence(Kind kind, const std::string& names, const std::string& file,
                              const std::string& other) {
    switch (kind) {
      case Kind::not_in_index:
        return cat(names, " in ", file, " but not in the index; used all the same");
      case Kind::misplaced:
        return cat(names, " in ", file, ", not in ", other,
                   " as the index says; used all the same");
      case Kind::copy_by_index:
        return cat(names, " in both ", file, " and ", other, "; used from ", file,
                   ", as the index says");
      case Kind::copy_by_name:
        return cat(names, " in both ", file, " and ", other, "; used from ", file,
                   ", the last by name");
    }
    unreachable("Kind");
  }

  void add(Kind kind, const StoredTensor& used, const std::string& other) {
    gathered_[{kind, file_name(used), other}].push_back(used.name);
  }

  std::map<std::tuple<Kind, std::string, std::string>, std::vector<std::string>> gathered_;
};

Error missing_error(const IndexEntry& entry, const SafetensorsIndex& index) {
  return error(index.files[entry.file], ": tensor ", quote_for_message(entry.tensor),
               ": expected in this file, as ", kIndexName, " says; found in no file");
}

// The map of each file of the index; null for one that holds no tensors.
std::vector<const MappedFile*> match_index_files(std::span<const StoredTensor> found,
                                                 const SafetensorsIndex* index) {
  if (!index) return {};
  std::map<std::string, const MappedFile*> by_name;
  const MappedFile* last = nullptr;
  for (const StoredTensor& tensor : found)
    if (std::exchange(last, tensor.file) != tensor.file) by_name[file_name(tensor)] = tensor.file;
  std::vector<const MappedFile*> files;
  for (const std::string& name : index->files) {
    const auto place = by_name.find(name);
    files.push_back(place == by_name.end() ? nullptr : place->second);
  }
  return files;
}

}  // namespace

Result<MergedTensors> merge_tensors(std::vector<StoredTensor> found,
                                    const SafetensorsIndex* index) {
  const std::vector<const MappedFile*> index_files = match_index_files(found, index);
  // Stable: copies of a tensor stay in the order of their files.
  std::stable_sort(found.begin(), found.end(),
                   [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  const std::span<const IndexEntry> entries =
      index ? std::span<const IndexEntry>(index->entries) : std::span<const IndexEntry>();
  MergedTensors merged;
  Notes notes;
  size_t next_entry = 0;
  for (auto begin = found.begin(); begin != found.end();) {
    const auto end = std::find_if(begin, found.end(),
                                  [&](const StoredTensor& t) { return t.name != begin->name; });
    auto used = end - 1;
    const bool listed = next_entry < entries.size() && entries[next_entry].tensor <= begin->name;
    bool as_index_says = false;
    if (listed) {
      const IndexEntry& entry = entries[next_entry++];
      if (entry.tensor != begin->name) return missing_error(entry, *index);
      const MappedFile* wanted = index_files[entry.file];
      const auto match =
          std::find_if(begin, end, [&](const StoredTensor& t) { return t.file == wanted; });
      as_index_says = match != end;
      if (as_index_says)
        used = match;
      else
        notes.misplaced(*used, index->files[entry.file]);
    } else if (index) {
      notes.not_in_index(*used);
    }
    for (auto copy = begin; copy != end; ++copy)
      if (copy != used) notes.copy(*used, *copy, as_index_says);
    merged.tensors.push_back(std::move(*used));
    begin = end;
  }
  if (next_entry < entries.size()) return missing_error(entries[next_entry], *index);
  merged.notes = notes.sentences();
  return merged;
}

}  // namespace slip
