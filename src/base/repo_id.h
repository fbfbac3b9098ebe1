// Names of models as Hugging Face writes them: "org/name" or "org/name@revision".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace slip {

struct RepoId {
  std::string org;
  std::string name;
  std::string revision = "main";  // a branch, a tag, a commit, or as refs/pr/1

  std::string full() const { return org + "/" + name; }
  // Where the Hugging Face cache keeps it.
  std::string cache_folder() const { return "models--" + org + "--" + name; }
};

// Nothing if the text is not such a name. All parts are then safe as parts of a path.
std::optional<RepoId> parse_repo_id(std::string_view text);

// One path component as Hugging Face allows it in names; never "." or "..".
bool is_plain_component(std::string_view text);

}  // namespace slip
