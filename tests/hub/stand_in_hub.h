// A hub on this machine that behaves as Hugging Face's does, or as badly as a test wants. Large
// files lie on a second server, to which the first redirects.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace slip {

struct HubRequest {
  bool to_storage = false;
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in lower case
  int number = 0;                              // among all requests, from 0

  bool is_for(const std::string& part) const { return target.find(part) != std::string::npos; }
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// What goes wrong with one reply.
struct HubFault {
  int status = 0;                          // instead of the right one, without content
  std::string headers = {};                // further ones, each with its line end
  std::optional<uint64_t> cut_after = {};  // bytes of the body, then the connection breaks
  bool ignores_range = false;              // sends the whole file, with 200
  int64_t range_shift = 0;                 // sends other bytes than asked for, and says so
  bool flips_a_byte = false;               // of the content, without saying so
  uint64_t bytes_per_second = 0;           // 0: as fast as it goes
  bool in_chunks = false;                  // Transfer-Encoding instead of a length
  bool hangs = false;                      // says nothing at all, until the hub is closed
};

class StandInHub {
 public:
  struct Options {
    size_t files_per_page = 1000;            // of the tree
    std::string certificate = {}, key = {};  // files (PEM): https
  };
  StandInHub() : StandInHub(Options{}) {}
  explicit StandInHub(const Options& options);
  ~StandInHub();
  StandInHub(const StandInHub&) = delete;
  StandInHub& operator=(const StandInHub&) = delete;

  // A file of the one repository, "org/model". `large`: kept as LFS files are.
  void add(const std::string& path, std::string content, bool large);
  // What the repository lists as a file's size, without having it.
  void claim_size(const std::string& path, uint64_t size);

  // Decides about every request; called by several threads at once.
  void on_request(std::function<HubFault(const HubRequest&)> decide);

  std::string endpoint() const;
  uint16_t port() const { return hub_port_; }
  std::string commit() const { return "0123456789abcdef0123456789abcdef01234567"; }
  // Of a file, as the hub lists it.
  std::string oid(const std::string& path) const;

  std::vector<HubRequest> requests() const;
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct File {
    std::string content, oid;
    bool large = false;
    uint64_t listed_size = 0;
  };
  struct Range {
    uint64_t begin = 0, end = 0;
    bool partial = false;
  };
  class Peer;  // a connection, plain or with TLS

  void listen(bool storage);
  void accept_from(int listener, bool storage);
  void serve(Peer& peer, bool storage);
  bool answer(Peer& peer, const HubRequest& request, const HubFault& fault);
  bool answer_api(Peer& peer, const HubRequest& request);
  bool answer_file(Peer& peer, const HubRequest& request, const HubFault& fault);
  bool send_content(Peer& peer, const File& file, const Range& range, const HubFault& fault);
  std::string tree_page(size_t page, std::string& headers) const;

  Options options_;
  std::string scheme_;
  void* tls_ = nullptr;  // SSL_CTX
  mutable std::mutex mutex_;
  std::map<std::string, File> files_;
  std::function<HubFault(const HubRequest&)> decide_;
  std::vector<HubRequest> requests_;
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<bool> closing_{false};
  int hub_listener_ = -1, storage_listener_ = -1;
  uint16_t hub_port_ = 0, storage_port_ = 0;
  std::vector<int> open_sockets_;
  std::vector<std::thread> threads_;
};

// Bytes that compress badly and repeat nowhere, the same for the same seed.
std::string some_content(size_t size, uint64_t seed);

}  // namespace slip
