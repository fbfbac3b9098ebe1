// Tensors of a repository on a hub, without downloading it: the index, the headers of the files
// that matter, and then the bytes of single tensors.
#pragma once

#include <atomic>
#include <map>
#include <set>

#include "convert/tensor_source.h"
#include "hub/hub_client.h"
#include "hub/repo_listing.h"

namespace slip {

class RemoteSource : public TensorSource {
 public:
  // Lists the repository and reads its index. SIGPIPE must be ignored; `interrupted` ends every
  // wait.
  static Result<std::unique_ptr<RemoteSource>> open(const RepoId& repo, const HubSettings& hub,
                                                    const std::atomic<bool>& interrupted);

  std::string origin() const override;
  const std::vector<std::string>& names() const override { return names_; }
  Result<std::vector<SourceTensor>> describe(std::span<const std::string> names) override;
  Status read(const SourceTensor& tensor, std::span<std::byte> into) override;

 private:
  RemoteSource(RepoId repo, HubSettings settings, TlsContext tls,
               const std::atomic<bool>& interrupted);

  Status read_index();
  Status read_header(const std::string& path);
  Result<const RemoteFile*> find_file(const std::string& path) const;
  Status fetch(const RemoteFile& file, FileRange range, std::span<std::byte> into);
  // One request for what is missing of `into` behind `done`; what ended it too early, if it did.
  HubTrouble fetch_rest(const RemoteFile& file, FileRange range, std::span<std::byte> into,
                        size_t& done);

  struct Place {
    std::string file;
    uint64_t offset = 0;
    SourceTensor tensor;
  };

  RepoId repo_;
  HubSettings settings_;
  TlsContext tls_;
  StopFlag stop_;
  std::optional<HubClient> hub_;  // refers to the members above
  RepoListing listing_;
  std::vector<std::string> names_;
  std::map<std::string, std::string, std::less<>> file_of_;  // by tensor
  std::map<std::string, Place, std::less<>> places_;         // of files whose header was read
  std::set<std::string> headers_read_;                       // of files
};

}  // namespace slip
