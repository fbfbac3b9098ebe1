#include "hub/repo_listing.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/json.h"

namespace slip {
namespace {

constexpr size_t kMostFiles = 100'000;
constexpr uint64_t kLargestFile = uint64_t{1} << 50;

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// It becomes a path on this machine.
bool is_safe_path(std::string_view path) {
  constexpr size_t kLongest = 1024;
  if (path.empty() || path.size() > kLongest) return false;
  for (std::string_view rest = path;;) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    if (std::any_of(part.begin(), part.end(), [](unsigned char c) { return c < ' '; }))
      return false;
    if (slash == rest.size()) return true;
    rest.remove_prefix(slash + 1);
  }
}

Result<std::string> string_of(const JsonObject& object, const char* key) {
  const Json* value = object.if_contains(key);
  if (!value || !value->is_string())
    return error("the hub's list has an entry without \"", key, "\"");
  return std::string(value->get_string());
}

Result<uint64_t> size_of(const JsonObject& object) {
  const Json* value = object.if_contains("size");
  boost::system::error_code code;
  const uint64_t size = value && value->is_number() ? value->to_number<uint64_t>(code) : 0;
  if (!value || !value->is_number() || code || size > kLargestFile)
    return error("the hub's list has a file without a size");
  return size;
}

Result<RemoteFile> read_file_entry(const JsonObject& entry) {
  RemoteFile file;
  SLIP_TRY(file.path, string_of(entry, "path"));
  if (!is_safe_path(file.path))
    return error("the hub lists a file with an unsafe name: \"", file.path.substr(0, 100), "\"");
  const Json* lfs = entry.if_contains("lfs");
  file.sha256 = lfs && lfs->is_object();
  const JsonObject& names = file.sha256 ? lfs->get_object() : entry;
  SLIP_TRY(file.oid, string_of(names, "oid"));
  if (file.oid.starts_with("sha256:")) file.oid.erase(0, 7);
  if (!is_hex(file.oid, file.sha256 ? 64 : 40))
    return error(file.path, ": the hub lists a checksum that is none");
  SLIP_TRY(file.size, size_of(names));
  return file;
}

}  // namespace

Status read_tree_page(const std::string& text, std::vector<RemoteFile>& files) {
  SLIP_TRY(const Json page, parse_json(text, "the hub's list of files"));
  if (!page.is_array()) return error("the hub's list of files is no list");
  for (const Json& entry : page.get_array()) {
    if (!entry.is_object()) return error("the hub's list of files has no files in it");
    SLIP_TRY(const std::string type, string_of(entry.get_object(), "type"));
    if (type != "file") continue;
    SLIP_TRY(RemoteFile file, read_file_entry(entry.get_object()));
    files.push_back(std::move(file));
    if (files.size() > kMostFiles) return error("the hub lists more than ", kMostFiles, " files");
  }
  return {};
}

std::string next_page(std::string_view link_header) {
  while (!link_header.empty()) {
    const size_t open = link_header.find('<'), close = link_header.find('>');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) break;
    const std::string_view address = link_header.substr(open + 1, close - open - 1);
    link_header.remove_prefix(close + 1);
    const std::string_view parameters = link_header.substr(0, link_header.find('<'));
    if (parameters.find("rel=\"next\"") != std::string_view::npos) return std::string(address);
  }
  return "";
}

Result<RepoListing> list_repo(HubClient& hub, const RepoId& repo) {
  RepoListing listing;
  SLIP_TRY(const HubClient::Text info, hub.get_text(cat("/api/models/", repo.full(), "/revision/",
                                                        percent_encoded_component(repo.revision)),
                                                    repo));
  SLIP_TRY(const Json parsed, parse_json(info.body, "the hub's answer about " + repo.full()));
  if (!parsed.is_object()) return error("the hub's answer about ", repo.full(), " is no object");
  SLIP_TRY(listing.commit, string_of(parsed.get_object(), "sha"));
  if (!is_hex(listing.commit, 40)) return error(repo.full(), ": the hub names no commit");

  std::string path = cat("/api/models/", repo.full(), "/tree/", listing.commit, "?recursive=true");
  for (size_t pages = 0; !path.empty(); ++pages) {
    if (pages > kMostFiles / 10) return error("the hub's list of files does not end");
    SLIP_TRY(const HubClient::Text page, hub.get_text(path, repo));
    SLIP_TRY_STATUS(read_tree_page(page.body, listing.files));
    const std::string next = next_page(page.head.header("Link"));
    path.clear();
    if (!next.empty()) {
      SLIP_TRY(path, hub.path_of(next));
    }
  }
  return listing;
}

std::string file_address(const RepoId& repo, const std::string& commit, const RemoteFile& file) {
  return cat("/", repo.full(), "/resolve/", commit, "/", percent_encoded(file.path));
}

}  // namespace slip
