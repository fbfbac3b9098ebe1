#include "hub/file_choice.h"

#include <fnmatch.h>

#include <algorithm>

namespace slip {
namespace {

const std::vector<std::string> kNeeded = {"*.safetensors", "*.json",     "*.jinja",  "*.model",
                                          "*.tiktoken",    "merges.txt", "vocab.txt"};

// Python pickles under their usual names.
const std::vector<std::string> kPickles = {"*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle"};

bool matches(const std::string& path, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
  });
}

bool is_needed(const std::string& path, bool has_sharded_names) {
  if (path.find('/') != std::string::npos || !matches(path, kNeeded)) return false;
  // Some makers publish the same weights twice, once under their own tensor names.
  return !(has_sharded_names && matches(path, {"consolidated*.safetensors"}));
}

}  // namespace

Result<std::vector<RemoteFile>> choose_files(const std::vector<RemoteFile>& all,
                                             const FileChoice& choice) {
  const bool has_sharded_names = std::any_of(all.begin(), all.end(), [](const RemoteFile& file) {
    return matches(file.path, {"model.safetensors", "model.safetensors.index.json"});
  });
  std::vector<RemoteFile> chosen;
  std::string pickle;
  for (const RemoteFile& file : all) {
    const bool wanted = choice.include.empty() ? is_needed(file.path, has_sharded_names)
                                               : matches(file.path, choice.include);
    if (!wanted || matches(file.path, choice.exclude)) continue;
    if (matches(file.path, kPickles)) {
      pickle = file.path;
      continue;
    }
    chosen.push_back(file);
  }
  if (chosen.empty() && !pickle.empty())
    return error(pickle, " is a pickle file, which can run code when it is opened; slipstream ",
                 "never fetches those");
  if (chosen.empty() && !choice.include.empty())
    return error("no file of the repository matches ", join(choice.include, ", "));
  if (chosen.empty())
    return error("the repository has no *.safetensors, *.json or tokenizer files for us");
  return chosen;
}

}  // namespace slip
