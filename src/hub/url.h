// http and https addresses, as much of them as downloads need.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace slip {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // a name or an address, without brackets
  std::string port;
  std::string target = "/";  // path and query, ready to be sent
  std::string user_info;     // "name:password" of a proxy, decoded

  // Refuses other schemes, and characters that would end a line of a request.
  static Result<Url> parse(std::string_view text);

  // Where a Location or Link found in a reply from here leads.
  Result<Url> resolve(std::string_view reference) const;

  // "https://host:port": what a token may be sent to, and what a connection can be used for.
  std::string origin() const;
  // As the Host header wants it: the port only where it is unusual.
  std::string authority() const;
};

// Everything but letters, digits and "-._~/" as %XX.
std::string percent_encoded(std::string_view path);
// The same with "/" encoded too: refs/pr/1 as one part of a path.
std::string percent_encoded_component(std::string_view text);

}  // namespace slip
