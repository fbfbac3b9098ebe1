#include "hub/hub_client.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/ascii.h"
#include "base/clock.h"

namespace slip {
namespace {

constexpr int kMostRedirects = 6;
constexpr size_t kLongestText = 64 << 20;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Overload, and what gateways say when something behind them is away.
bool is_passing(int status) {
  return status == 408 || status == 425 || status == 429 || status / 100 == 5;
}

std::string without_quotes(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
    etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

}  // namespace

double RetryPolicy::wait_seconds(int failures) const {
  return std::min(first_wait_seconds * std::exp2(std::max(failures - 1, 0)), longest_wait_seconds);
}

Result<HubClient> HubClient::make(const HubSettings& settings, const TlsContext& tls,
                                  const StopFlag& stop) {
  Result<Url> endpoint = Url::parse(settings.endpoint);
  if (!endpoint.ok()) return std::move(endpoint).failure().in("the hub's address");
  while (endpoint.value().target.ends_with("/")) endpoint.value().target.pop_back();
  const auto printable = [](char byte) { return byte > ' ' && byte < 0x7f; };
  if (!std::all_of(settings.token.begin(), settings.token.end(), printable))
    return error("the token has characters that no token has");
  return HubClient(settings, std::move(endpoint).value(), tls, stop);
}

Result<HubReply> HubClient::get(const std::string& path, const std::optional<FileRange>& range) {
  Url url = endpoint_;
  url.target += path;
  HubReply reply;
  for (int redirects = 0; redirects <= kMostRedirects; ++redirects) {
    reply.from_hub = url.origin() == endpoint_.origin();
    reply.final_host = url.authority();
    HttpClient::Headers headers = {{"User-Agent", settings_.user_agent},
                                   {"Accept-Encoding", "identity"}};
    if (range) headers.emplace_back("Range", cat("bytes=", range->begin, "-", range->end - 1));
    if (reply.from_hub && !settings_.token.empty())
      headers.emplace_back("Authorization", "Bearer " + settings_.token);
    SLIP_TRY(reply.head, http_.get(url, headers));
    if (reply.from_hub) {
      const std::string_view linked = reply.head.header("X-Linked-Etag");
      const bool direct = !is_redirect(reply.head.status);
      const std::string etag =
          without_quotes(linked.empty() && direct ? reply.head.header("ETag") : linked);
      if (!etag.empty()) reply.linked_etag = etag;
    }
    if (!is_redirect(reply.head.status)) return reply;
    SLIP_TRY(url, url.resolve(reply.head.header("Location")));
    url.user_info.clear();
    char rest[4096];  // usually one line; the connection can then be used again
    if (const Result<size_t> count = read(rest); count.ok() && count.value() > 0) (void)read(rest);
  }
  return error(endpoint_.authority(), " redirects in a circle");
}

HubTrouble HubClient::explain(const HubReply& reply, const RepoId& repo) const {
  const int status = reply.head.status;
  const std::string name = repo.full();
  const std::string_view code = reply.head.header("X-Error-Code");
  HubTrouble trouble;
  if (const auto wait = parse_decimal(reply.head.header("Retry-After")))
    trouble.wait_seconds = double(std::min<uint64_t>(*wait, 300));
  if (is_passing(status)) {
    trouble.message =
        cat(reply.final_host, " answers ", status, status == 429 ? " (too many requests)" : "");
    return trouble;
  }
  if (!reply.from_hub) {
    // Addresses of the storage behind a hub are signed and run out: the hub makes a new one.
    trouble.worth_retrying = status == 401 || status == 403 || status == 404 || status == 410;
    trouble.message = cat(reply.final_host, " answers ", status);
    return trouble;
  }
  trouble.worth_retrying = false;
  const std::string page = cat(settings_.endpoint, "/", name);
  const std::string_view words = reply.head.header("X-Error-Message");
  if (code == "GatedRepo" || (status == 403 && code.empty())) {
    trouble.message =
        settings_.token.empty()
            ? cat(name, " is gated (", status, "): accept its conditions at ", page,
                  ", then give a token with HF_TOKEN or hf auth login")
            : cat(name, " is gated (", status,
                  ") and this token's owner has no access: accept its ", "conditions at ", page);
  } else if (status == 401 && settings_.token.empty()) {
    trouble.message = cat(name, " does not exist, or is private (401): check the name, or give a ",
                          "token with HF_TOKEN or hf auth login");
  } else if (status == 401) {
    trouble.message = cat("the hub refuses the token (401), or ", name,
                          " does not exist: check HF_TOKEN, or log in again with hf auth login");
  } else if (code == "RevisionNotFound") {
    trouble.message = cat(name, " has no revision ", repo.revision, " (404)");
  } else if (status == 404) {
    trouble.message = cat(name, " was not found at ", settings_.endpoint,
                          " (404): check the name and the revision ", repo.revision);
  } else {
    trouble.message = cat(reply.final_host, " answers ", status, words.empty() ? "" : ": ", words);
  }
  return trouble;
}

Result<HubClient::Text> HubClient::get_text_once(const std::string& path, const RepoId& repo,
                                                 bool& retry) {
  retry = true;
  SLIP_TRY(HubReply reply, get(path));
  if (reply.head.status != 200) {
    HubTrouble trouble = explain(reply, repo);
    retry = trouble.worth_retrying;
    if (retry) pause(trouble.wait_seconds);
    return Error{std::move(trouble.message)};
  }
  Text text{std::move(reply.head), ""};
  std::vector<char> piece(64 << 10);
  for (;;) {
    SLIP_TRY(const size_t count, read(piece));
    if (count == 0) return text;
    text.body.append(piece.data(), count);
    if (text.body.size() > kLongestText) return error(reply.final_host, " answers without end");
  }
}

Result<HubClient::Text> HubClient::get_text(const std::string& path, const RepoId& repo) {
  // Nothing has been downloaded yet and somebody may be waiting: fewer attempts than for pieces.
  const int attempts = std::min(settings_.retries.attempts, 4);
  for (int failures = 1;; ++failures) {
    bool retry = false;
    Result<Text> text = get_text_once(path, repo, retry);
    if (text.ok() || !retry || stopped()) return text;
    if (failures >= attempts) return std::move(text).failure().about("hub");
    if (on_retry_) on_retry_(text.failure().message);
    pause(settings_.retries.wait_seconds(failures));
  }
}

Result<std::string> HubClient::path_of(std::string_view link) const {
  SLIP_TRY(const Url url, endpoint_.resolve(link));
  if (url.origin() != endpoint_.origin() || !url.target.starts_with(endpoint_.target))
    return error("the hub's list goes on elsewhere: ", url.origin());
  return url.target.substr(endpoint_.target.size());
}

void HubClient::pause(double seconds) const {
  const Stopwatch clock;
  while (!stopped() && clock.seconds() < seconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace slip
