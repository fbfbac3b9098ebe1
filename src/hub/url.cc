#include "hub/url.h"

#include <algorithm>
#include <cctype>

#include "base/ascii.h"

namespace slip {
namespace {

bool is_printable(char byte) { return byte > ' ' && byte < 0x7f; }

std::string encoded(std::string_view text, std::string_view plain) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    if (value < 0x80 && (std::isalnum(value) || plain.find(byte) != std::string_view::npos)) {
      out += byte;
    } else {
      out += {'%', kDigits[value >> 4], kDigits[value & 15]};
    }
  }
  return out;
}

// "host", "host:80", "[::1]:80"
Status split_authority(std::string_view text, Url& url) {
  std::string_view port;
  if (text.starts_with("[")) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return error("an address without its closing bracket");
    url.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    url.host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (url.host.empty()) return error("there is no host in it");
  if (port.empty()) {
    url.port = url.scheme == "https" ? "443" : "80";
    return {};
  }
  url.port = port.substr(1);
  if (port[0] != ':' || url.port.empty() || url.port.size() > 5 ||
      !std::all_of(url.port.begin(), url.port.end(),
                   [](char c) { return std::isdigit(static_cast<unsigned char>(c)); }))
    return error("the port is no number");
  return {};
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return error("\"", text.substr(0, 200), "\" is not an address: ", why);
  };
  if (!std::all_of(text.begin(), text.end(), is_printable))
    return refuse("it has blanks or control characters");
  Url url;
  const size_t colon = text.find("://");
  if (colon != std::string_view::npos) url.scheme = lower_ascii(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https")
    return refuse("expected http://... or https://...");
  std::string_view rest = text.substr(colon + 3);
  rest = rest.substr(0, rest.find('#'));
  const size_t path = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, path);
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    url.user_info = percent_decoded(authority.substr(0, at));
    authority.remove_prefix(at + 1);
  }
  if (const Status split = split_authority(authority, url); !split.ok())
    return refuse(split.failure().message);
  url.target = rest.substr(path);
  if (!url.target.starts_with("/")) url.target.insert(0, "/");
  return url;
}

Result<Url> Url::resolve(std::string_view reference) const {
  if (reference.find("://") != std::string_view::npos) return parse(reference);
  if (reference.starts_with("//")) return parse(cat(scheme, ":", reference));
  if (reference.starts_with("/")) return parse(cat(origin(), reference));
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  return parse(cat(origin(), path.substr(0, path.rfind('/') + 1), reference));
}

std::string Url::origin() const {
  const bool brackets = host.find(':') != std::string::npos;
  return cat(scheme, "://", brackets ? "[" : "", host, brackets ? "]" : "", ":", port);
}

std::string Url::authority() const {
  const bool brackets = host.find(':') != std::string::npos;
  const bool usual = port == (scheme == "https" ? "443" : "80");
  return cat(brackets ? "[" : "", host, brackets ? "]" : "", usual ? "" : ":", usual ? "" : port);
}

std::string percent_encoded(std::string_view path) { return encoded(path, "-._~/"); }
std::string percent_encoded_component(std::string_view text) { return encoded(text, "-._~"); }

}  // namespace slip
