// Which files of a repository are worth fetching.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "hub/repo_listing.h"

namespace slip {

struct FileChoice {
  // Shell patterns, matched against whole paths; "*" also stands for "/". Without `include` it is
  // what a model needs: weights, configuration, tokenizer and templates, from the top folder.
  std::vector<std::string> include = {}, exclude = {};
};

// Pickle files, which run code when they are opened, are never taken, whatever was asked for. A
// choice of nothing is a failure.
Result<std::vector<RemoteFile>> choose_files(const std::vector<RemoteFile>& all,
                                             const FileChoice& choice);

}  // namespace slip
