#include "base/repo_id.h"

#include <algorithm>

namespace slip {
namespace {

// A revision may have several components, as in refs/pr/1.
bool is_plain_revision(std::string_view text) {
  for (size_t slash; (slash = text.find('/')) != std::string_view::npos;
       text.remove_prefix(slash + 1))
    if (!is_plain_component(text.substr(0, slash))) return false;
  return is_plain_component(text);
}

}  // namespace

bool is_plain_component(std::string_view text) {
  return !text.empty() && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

std::optional<RepoId> parse_repo_id(std::string_view text) {
  RepoId id;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    id.revision = text.substr(at + 1);
    text = text.substr(0, at);
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  id.org = text.substr(0, slash);
  id.name = text.substr(slash + 1);
  if (!is_plain_component(id.org) || !is_plain_component(id.name) ||
      !is_plain_revision(id.revision))
    return std::nullopt;
  return id;
}

}  // namespace slip
