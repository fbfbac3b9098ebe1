// GET over HTTP and HTTPS, directly or through a proxy. Connections are kept for the next request
// to the same server. One client belongs to one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hub/client_connection.h"
#include "hub/tls.h"
#include "hub/url.h"

namespace slip {

// As the usual environment variables say it: https_proxy, http_proxy, no_proxy.
struct ProxySettings {
  std::string for_https, for_http;  // "http://user:password@host:port"; empty: none
  std::vector<std::string> except;  // hosts, ".domains" with all below them, or "*"
};

// The proxy for an address; nothing if it is reached directly.
Result<std::optional<Url>> proxy_for(const Url& url, const ProxySettings& settings);

class HttpClient {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  // All of them must outlive the client.
  HttpClient(const TlsContext& tls, const ProxySettings& proxies, const NetworkLimits& limits,
             const StopFlag& stop)
      : tls_(tls), proxies_(proxies), limits_(limits), stop_(stop) {}

  // Sends the request and reads the head of the reply; redirects are replies like others. What was
  // not read of the reply before is given up, with its connection.
  Result<HttpReplyHead> get(const Url& url, const Headers& headers);

  // Some of the body of that reply; 0 at its end.
  Result<size_t> read(std::span<char> into);

 private:
  Result<std::unique_ptr<ByteStream>> open_stream(const Url& url, const std::optional<Url>& proxy);
  Result<std::unique_ptr<Socket>> open_tunnel(const Url& url, const Url& proxy);

  const TlsContext& tls_;
  const ProxySettings& proxies_;
  const NetworkLimits& limits_;
  const StopFlag& stop_;
  std::map<std::string, std::unique_ptr<ClientConnection>> connections_;  // by origin
  std::string current_;  // the origin whose reply is being read
};

}  // namespace slip
