// Who may come in: the checks that every request passes before its body is read. A web page that a
// user visits can make the browser send requests to this machine; Host and Origin give it away.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/auth.h"
#include "server/http_server.h"

namespace slip {

class HttpGate {
 public:
  struct Options {
    KeyRing keys = {};  // empty: nobody is asked for one
    // Host names that are ours, beyond localhost and numeric addresses, which no foreign name
    // server can hand out. "*": all.
    std::vector<std::string> hosts = {};
    // Origins whose pages may use this server, beyond its own: "https://chat.example". "*": all.
    std::vector<std::string> origins = {};
    // What whoever runs the server could do about a refusal; we know no flags.
    std::string host_hint = {}, origin_hint = {};
  };
  explicit HttpGate(Options options) : options_(std::move(options)) {}

  Admission admit(HttpRequest& request) const;

 private:
  bool is_our_host(std::string_view host) const;
  bool is_welcome_origin(std::string_view origin, std::string_view host) const;

  Options options_;
};

}  // namespace slip
