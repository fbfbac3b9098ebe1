// What a repository holds, as the hub lists it. Nothing in it is trusted before it was checked.
#pragma once

#include <string>
#include <vector>

#include "base/repo_id.h"
#include "hub/digest.h"
#include "hub/hub_client.h"

namespace slip {

struct RemoteFile {
  std::string path;  // "config.json"; relative, without ".."
  uint64_t size = 0;
  std::string oid;      // its checksum in hexadecimal, which is also its name in the cache
  bool sha256 = false;  // how large files are named; small ones as git names them

  Digest digest() const { return sha256 ? Digest::sha256() : Digest::git_blob(size); }
};

struct RepoListing {
  std::string commit;
  std::vector<RemoteFile> files;
};

Result<RepoListing> list_repo(HubClient& hub, const RepoId& repo);

// Where a file of a commit is fetched from, below the endpoint.
std::string file_address(const RepoId& repo, const std::string& commit, const RemoteFile& file);

// Checks one page of a listing and appends the files in it.
Status read_tree_page(const std::string& text, std::vector<RemoteFile>& files);

// The address marked rel="next" in a Link header; empty if there is none.
std::string next_page(std::string_view link_header);

}  // namespace slip
