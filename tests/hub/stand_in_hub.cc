#include "tests/hub/stand_in_hub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/clock.h"
#include "base/text.h"
#include "hub/digest.h"

namespace slip {

class StandInHub::Peer {
 public:
  Peer(int socket, void* tls) : socket_(socket) {
    if (!tls) return;
    ssl_ = SSL_new(static_cast<SSL_CTX*>(tls));
    SSL_set_fd(ssl_, socket);
    good_ = SSL_accept(ssl_) == 1;
  }
  ~Peer() {
    if (ssl_) SSL_free(ssl_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool good() const { return good_; }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t most = std::min<size_t>(bytes.size(), 1 << 20);
      const ssize_t count = ssl_ ? SSL_write(ssl_, bytes.data(), int(most))
                                 : ::send(socket_, bytes.data(), most, MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(size_t(count));
    }
    return true;
  }

  // The head of the next request; empty at the end.
  std::string next_head() {
    size_t end;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
      char bytes[8192];
      const ssize_t count = ssl_ ? SSL_read(ssl_, bytes, int(sizeof(bytes)))
                                 : ::recv(socket_, bytes, sizeof(bytes), 0);
      if (count <= 0) return "";
      received_.append(bytes, size_t(count));
    }
    const std::string head = received_.substr(0, end + 2);
    received_.erase(0, end + 4);
    return head;
  }

 private:
  int socket_;
  SSL* ssl_ = nullptr;
  bool good_ = true;
  std::string received_;
};

namespace {

HubRequest parse_request(const std::string& head) {
  HubRequest request;
  const size_t blank = head.find(' ');
  request.target = head.substr(blank + 1, head.find(' ', blank + 1) - blank - 1);
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    const size_t end = head.find("\r\n", at), colon = head.find(": ", at);
    if (end == std::string::npos || colon == std::string::npos || colon > end) break;
    std::string name = head.substr(at, colon - at);
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    request.headers[name] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  return request;
}

std::string simple_reply(int status, const std::string& headers, const std::string& body) {
  return cat("HTTP/1.1 ", status, " Words\r\nContent-Length: ", body.size(), "\r\n", headers,
             "\r\n", body);
}

}  // namespace

StandInHub::StandInHub(const Options& options) : options_(options) {
  scheme_ = options.certificate.empty() ? "http" : "https";
  if (!options.certificate.empty()) {
    SSL_CTX* tls = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate_chain_file(tls, options.certificate.c_str());
    SSL_CTX_use_PrivateKey_file(tls, options.key.c_str(), SSL_FILETYPE_PEM);
    tls_ = tls;
  }
  listen(false);
  listen(true);
}

StandInHub::~StandInHub() {
  closing_ = true;
  std::vector<std::thread> threads;
  {
    const std::scoped_lock lock(mutex_);
    ::shutdown(hub_listener_, SHUT_RDWR);
    ::shutdown(storage_listener_, SHUT_RDWR);
    for (const int socket : open_sockets_) ::shutdown(socket, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  ::close(hub_listener_);
  ::close(storage_listener_);
  if (tls_) SSL_CTX_free(static_cast<SSL_CTX*>(tls_));
}

void StandInHub::add(const std::string& path, std::string content, bool large) {
  Digest digest = large ? Digest::sha256() : Digest::git_blob(content.size());
  digest.add(content);
  const std::scoped_lock lock(mutex_);
  const uint64_t size = content.size();
  files_[path] = {std::move(content), digest.finish(), large, size};
}

void StandInHub::claim_size(const std::string& path, uint64_t size) {
  const std::scoped_lock lock(mutex_);
  files_[path].listed_size = size;
}

void StandInHub::on_request(std::function<HubFault(const HubRequest&)> decide) {
  const std::scoped_lock lock(mutex_);
  decide_ = std::move(decide);
}

std::string StandInHub::endpoint() const { return cat(scheme_, "://127.0.0.1:", hub_port_); }

std::string StandInHub::oid(const std::string& path) const {
  const std::scoped_lock lock(mutex_);
  return files_.at(path).oid;
}

std::vector<HubRequest> StandInHub::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

void StandInHub::listen(bool storage) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(place);
  ::bind(listener, reinterpret_cast<sockaddr*>(&place), length);
  ::listen(listener, 64);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &length);
  (storage ? storage_listener_ : hub_listener_) = listener;
  (storage ? storage_port_ : hub_port_) = ntohs(place.sin_port);
  threads_.emplace_back([this, listener, storage] { accept_from(listener, storage); });
}

void StandInHub::accept_from(int listener, bool storage) {
  while (!closing_) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    const std::scoped_lock lock(mutex_);
    if (closing_) {
      ::close(socket);
      break;
    }
    open_sockets_.push_back(socket);
    threads_.emplace_back([this, socket, storage] {
      {
        Peer peer(socket, tls_);
        if (peer.good()) serve(peer, storage);
      }
      const std::scoped_lock socket_lock(mutex_);
      std::erase(open_sockets_, socket);
      ::close(socket);
    });
  }
}

void StandInHub::serve(Peer& peer, bool storage) {
  for (;;) {
    const std::string head = peer.next_head();
    if (head.empty()) return;
    HubRequest request = parse_request(head);
    request.to_storage = storage;
    HubFault fault;
    {
      std::function<HubFault(const HubRequest&)> decide;
      {
        const std::scoped_lock lock(mutex_);
        request.number = int(requests_.size());
        requests_.push_back(request);
        decide = decide_;
      }
      if (decide) fault = decide(request);
    }
    if (!answer(peer, request, fault)) return;
  }
}

bool StandInHub::answer(Peer& peer, const HubRequest& request, const HubFault& fault) {
  while (fault.hangs && !closing_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (fault.hangs) return false;
  if (fault.status != 0) return peer.send(simple_reply(fault.status, fault.headers, ""));
  if (request.is_for("/api/")) return answer_api(peer, request);
  return answer_file(peer, request, fault);
}

bool StandInHub::answer_api(Peer& peer, const HubRequest& request) {
  if (request.is_for("/api/models/org/model/revision/"))
    return peer.send(simple_reply(200, "", cat("{\"sha\": \"", commit(), "\", \"siblings\": []}")));
  if (!request.is_for("/api/models/org/model/tree/"))
    return peer.send(simple_reply(404, "X-Error-Code: RepoNotFound\r\n", ""));
  const size_t cursor = request.target.find("cursor=");
  const size_t page = cursor == std::string::npos
                          ? 0
                          : std::strtoul(request.target.c_str() + cursor + 7, nullptr, 10);
  std::string headers;
  const std::string body = tree_page(page, headers);
  return peer.send(simple_reply(200, headers, body));
}

std::string StandInHub::tree_page(size_t page, std::string& headers) const {
  const std::scoped_lock lock(mutex_);
  std::string body = R"([{"type": "directory", "oid": "x", "size": 0, "path": "folder"})";
  size_t index = 0;
  for (const auto& [path, file] : files_) {
    const size_t its_page = index++ / options_.files_per_page;
    if (its_page != page) continue;
    body += cat(R"(, {"type": "file", "path": ")", path, R"(", "size": )", file.listed_size);
    if (file.large) {
      body += cat(R"(, "oid": "1111111111111111111111111111111111111111", "lfs": {"oid": ")",
                  file.oid, R"(", "size": )", file.listed_size, R"(, "pointerSize": 134}})");
    } else {
      body += cat(R"(, "oid": ")", file.oid, "\"}");
    }
  }
  if (index > (page + 1) * options_.files_per_page)
    headers = cat("Link: <", endpoint(), "/api/models/org/model/tree/", commit(),
                  "?recursive=true&cursor=", page + 1, ">; rel=\"next\"\r\n");
  return body + "]";
}

bool StandInHub::answer_file(Peer& peer, const HubRequest& request, const HubFault& fault) {
  const File* file = nullptr;
  const std::string start =
      request.to_storage ? "/storage/" : cat("/org/model/resolve/", commit(), "/");
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [path, candidate] : files_)
      if (request.target == start + path || request.target.starts_with(start + path + "?"))
        file = &candidate;
  }
  if (!file) return peer.send(simple_reply(404, "X-Error-Code: EntryNotFound\r\n", ""));
  if (file->large && !request.to_storage)
    return peer.send(
        simple_reply(302,
                     cat("Location: ", scheme_, "://127.0.0.1:", storage_port_, "/storage/",
                         request.target.substr(start.size()), "?signature=x\r\nX-Linked-Etag: \"",
                         file->oid, "\"\r\n", fault.headers),
                     "Found"));

  Range range{0, file->content.size(), false};
  const std::string wanted = request.header("range");
  if (!wanted.empty() && !fault.ignores_range) {
    range.partial = true;
    range.begin =
        uint64_t(int64_t(std::strtoull(wanted.c_str() + 6, nullptr, 10)) + fault.range_shift);
    range.end =
        std::min<uint64_t>(file->content.size(),
                           std::strtoull(wanted.c_str() + wanted.find('-') + 1, nullptr, 10) + 1);
  }
  return send_content(peer, *file, range, fault);
}

bool StandInHub::send_content(Peer& peer, const File& file, const Range& range,
                              const HubFault& fault) {
  const uint64_t length = range.end - range.begin;
  std::string head = cat("HTTP/1.1 ", range.partial ? 206 : 200, " Words\r\n");
  if (range.partial)
    head += cat("Content-Range: bytes ", range.begin, "-", range.end - 1, "/", file.content.size(),
                "\r\n");
  if (!file.large) head += cat("ETag: \"", file.oid, "\"\r\n");
  head += fault.in_chunks ? std::string("Transfer-Encoding: chunked\r\n")
                          : cat("Content-Length: ", length, "\r\n");
  if (!peer.send(head + fault.headers + "\r\n")) return false;

  const Stopwatch clock;
  uint64_t sent = 0;
  const uint64_t end = std::min(length, fault.cut_after.value_or(length));
  while (sent < end && !closing_) {
    uint64_t step = std::min<uint64_t>(end - sent, 1 << 20);
    if (fault.bytes_per_second > 0) {
      step = std::min<uint64_t>(step, std::max<uint64_t>(fault.bytes_per_second / 50, 1));
      const double due = double(sent) / double(fault.bytes_per_second);
      if (due > clock.seconds())
        std::this_thread::sleep_for(std::chrono::duration<double>(due - clock.seconds()));
    }
    std::string_view bytes(file.content.data() + range.begin + sent, step);
    std::string changed;
    if (fault.flips_a_byte && sent == 0) {
      changed = bytes;
      changed[changed.size() / 2] = char(changed[changed.size() / 2] ^ 1);
      bytes = changed;
    }
    char size[32];
    std::snprintf(size, sizeof(size), "%zx;note=1\r\n", bytes.size());
    if (fault.in_chunks && !peer.send(size)) return false;
    if (!peer.send(bytes)) return false;
    if (fault.in_chunks && !peer.send("\r\n")) return false;
    sent += step;
    bytes_sent_ += step;
  }
  if (sent < length) return false;  // the connection breaks
  return !fault.in_chunks || peer.send("0\r\nTrailer: x\r\n\r\n");
}

std::string some_content(size_t size, uint64_t seed) {
  std::string content(size, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < size; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(content.data() + i, &state, std::min<size_t>(8, size - i));
  }
  return content;
}

}  // namespace slip
