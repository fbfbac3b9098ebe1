// A server that is measured: one connection per request, streams of events read as they come.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/tls.h"
#include "hub/url.h"

namespace slip {

struct HttpCall {
  std::string method = "GET";
  std::string path;  // "/v1/models"
  std::string body = {};
};

struct HttpResult {
  int status = 0;
  std::string body;  // whole, also of a stream
};

// May be used by several threads.
class MeasuredServer {
 public:
  struct Access {
    std::string api_key;      // empty: none
    std::string authorities;  // certificates to trust for https; empty: those of the system
  };
  // "http://localhost:8080", with or without "/v1" behind it.
  static Result<MeasuredServer> at(const std::string& url, const Access& access);

  // `on_bytes`, if given, hears the body in pieces.
  using OnBytes = std::function<void(std::string_view piece)>;
  Result<HttpResult> call(const HttpCall& call, const OnBytes& on_bytes = {}) const;

  const Url& url() const { return url_; }
  // Before "/v1"; without a slash at its end.
  const std::string& path() const { return path_; }

 private:
  MeasuredServer() = default;
  Result<std::unique_ptr<ByteStream>> connect() const;

  Url url_;
  std::string path_, api_key_;
  std::unique_ptr<TlsContext> tls_;  // null for plain http
  std::unique_ptr<StopFlag> never_ = std::make_unique<StopFlag>();
};

// Cuts a stream of server-sent events into the data of each.
class EventReader {
 public:
  void add(std::string_view bytes, const std::function<void(std::string_view data)>& on_data);

 private:
  std::string line_;
};

}  // namespace slip
