// A Hugging Face hub as a server: where it is, who we are, what its answers mean.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/repo_id.h"
#include "hub/http_client.h"

namespace slip {

struct RetryPolicy {
  int attempts = 8;  // in a row without a byte
  double first_wait_seconds = 0.5, longest_wait_seconds = 20;

  // Before attempt `failures` + 1; doubles each time.
  double wait_seconds(int failures) const;
};

struct HubSettings {
  std::string endpoint = "https://huggingface.co";
  std::string token;  // sent to the endpoint alone, never to where it redirects
  std::string user_agent = "slipstream";
  std::string authorities;  // see TlsContext::make
  ProxySettings proxies;
  NetworkLimits limits;
  RetryPolicy retries;
};

// Why something did not work, and whether it may work a moment later.
struct HubTrouble {
  std::string message;
  bool worth_retrying = true;
  double wait_seconds = 0;  // the server's own wish
};

struct FileRange {
  uint64_t begin = 0, end = 0;  // end: one behind the last
};

struct HubReply {
  HttpReplyHead head;
  std::string final_host;
  bool from_hub = true;     // not from where it redirected to
  std::string linked_etag;  // the content's checksum as the hub itself tells it; may be empty
};

// One per thread.
class HubClient {
 public:
  // Checks the settings; what they refer to must outlive the client.
  static Result<HubClient> make(const HubSettings& settings, const TlsContext& tls,
                                const StopFlag& stop);

  // Sends a GET for a path below the endpoint and follows redirects.
  Result<HubReply> get(const std::string& path, const std::optional<FileRange>& range = {});
  Result<size_t> read(std::span<char> into) { return http_.read(into); }

  // The whole body of a small reply and its head, tried again as the settings allow. `repo` is for
  // the words of a failure.
  struct Text {
    HttpReplyHead head;
    std::string body;
  };
  Result<Text> get_text(const std::string& path, const RepoId& repo);
  // Hears why get_text() tries again.
  void on_retry(std::function<void(const std::string& why)> listener) {
    on_retry_ = std::move(listener);
  }

  // What a reply without content means.
  HubTrouble explain(const HubReply& reply, const RepoId& repo) const;

  // The path of an address below the endpoint; a failure for any other.
  Result<std::string> path_of(std::string_view link) const;

  // Sleeps, but not through a stop.
  void pause(double seconds) const;
  bool stopped() const { return stop_.raised(); }

 private:
  HubClient(const HubSettings& settings, Url endpoint, const TlsContext& tls, const StopFlag& stop)
      : settings_(settings),
        endpoint_(std::move(endpoint)),
        stop_(stop),
        http_(tls, settings.proxies, settings.limits, stop) {}
  Result<Text> get_text_once(const std::string& path, const RepoId& repo, bool& retry);

  const HubSettings& settings_;
  Url endpoint_;  // its target ends without a slash
  const StopFlag& stop_;
  HttpClient http_;
  std::function<void(const std::string&)> on_retry_;
};

}  // namespace slip
