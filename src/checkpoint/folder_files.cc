#include "checkpoint/folder_files.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "base/text.h"
#include "checkpoint/index.h"
#include "checkpoint/json_visitor.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".safetensors";

bool contains(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "model-00002-of-00003.safetensors" is number 2 of the set {"model-", "-of-00003.safetensors"}.
struct ShardName {
  std::string before;
  std::string after;
  uint64_t number;
  uint64_t total;
  size_t digits;
};

std::optional<ShardName> parse_shard_name(std::string_view name) {
  const size_t of = name.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return std::nullopt;
  const size_t dash = name.rfind('-', of - 1);
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view digits = name.substr(dash + 1, of - dash - 1);
  std::string_view total = name.substr(of + 4);
  total.remove_suffix(kExtension.size());
  const auto number = parse_decimal(digits);
  const auto count = parse_decimal(total);
  if (!number || !count) return std::nullopt;
  return ShardName{std::string(name.substr(0, dash + 1)), std::string(name.substr(of)), *number,
                   *count, digits.size()};
}

Error no_files_error(const fs::path& folder, const std::string& example) {
  return error(folder.string(), ": no .safetensors files here; expected a folder as published on ",
               "Hugging Face, found ",
               example.empty() ? "an empty folder" : cat("only other files such as ", example));
}

}  // namespace

FileRole role_of_file(std::string_view name, std::span<const std::string> index_files) {
  if (contains(index_files, name)) return FileRole::weights;
  if (name.starts_with("consolidated") || name.starts_with("adapter_"))
    return FileRole::not_weights;
  for (const std::string_view part : {"mtp", "extra"})
    if (name.find(part) != std::string_view::npos) return FileRole::weights;
  if (name.starts_with("model")) return FileRole::weights;
  return FileRole::ask_header;
}

Result<std::vector<std::string>> list_safetensors(const fs::path& folder) {
  std::error_code code;
  const fs::file_status status = fs::status(folder, code);
  if (status.type() == fs::file_type::not_found) return error(folder.string(), ": no such folder");
  if (code) return error(folder.string(), ": cannot open: ", code.message());
  if (status.type() != fs::file_type::directory)
    return error(folder.string(), ": is a file; expected the folder that holds config.json and ",
                 "the .safetensors files");

  std::vector<std::string> names;
  std::string other;
  fs::directory_iterator entry(folder, code);
  for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    if (name.ends_with(kExtension))
      names.push_back(name);
    else if (other.empty() || name < other)
      other = name;
  }
  if (code) return error(folder.string(), ": cannot list: ", code.message());
  if (names.empty()) return no_files_error(folder, other.empty() ? "" : quote_for_message(other));
  std::sort(names.begin(), names.end());
  return names;
}

Status check_index_files(const fs::path& folder, std::span<const std::string> names,
                         std::span<const std::string> index_files) {
  for (const std::string& file : index_files)
    if (!contains(names, file))
      return error((folder / file).string(), ": missing, but named in ", kIndexName,
                   "; download it again");
  return {};
}

Status check_shard_numbers(const fs::path& folder, std::span<const std::string> names) {
  struct ShardSet {
    ShardName first;
    std::set<uint64_t> numbers;
  };
  std::map<std::pair<std::string, std::string>, ShardSet> sets;
  for (const std::string& name : names) {
    const auto shard = parse_shard_name(name);
    if (!shard) continue;
    auto& set = sets.try_emplace({shard->before, shard->after}, ShardSet{*shard, {}}).first->second;
    set.numbers.insert(shard->number);
  }
  for (const auto& [parts, set] : sets) {
    uint64_t missing = 1;
    while (set.numbers.contains(missing)) ++missing;
    if (missing > set.first.total) continue;
    std::string number = cat(missing);
    if (number.size() < set.first.digits) number.insert(0, set.first.digits - number.size(), '0');
    return error((folder / (parts.first + number + parts.second)).string(), ": missing; expected ",
                 set.first.total, " files of this name, found ", set.numbers.size());
  }
  return {};
}

}  // namespace slip
