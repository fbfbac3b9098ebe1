#include "server/http_gate.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/ascii.h"

namespace slip {
namespace {

// "localhost:8080" -> "localhost", "[::1]:8080" -> "::1"
std::string host_name(std::string_view host) {
  if (const size_t end = host.find(']'); host.starts_with('[') && end != std::string_view::npos) {
    const std::string_view behind = host.substr(end + 1);
    if (behind.empty() || behind.starts_with(':')) return std::string(host.substr(1, end - 1));
  }
  std::string name = lower_ascii(host.substr(0, host.rfind(':')));
  if (name.ends_with('.')) name.pop_back();
  return name;
}

bool is_numeric_address(const std::string& name) {
  in6_addr address;
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& entry) { return entry == "*" || entry == text; });
}

std::string_view header(const HttpRequest& request, const char* name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? std::string_view() : found->second;
}

// Orchestrators ask for health without a key. The page holds no data, and a browser that follows a
// link could not send one; what the page asks for then needs the key.
bool is_open_to_all(const HttpRequest& request) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  return reads &&
         (request.path == "/health" || request.path == "/v1/health" || request.path == "/");
}

bool is_header_list(std::string_view text) {
  return text.size() <= 1024 && std::all_of(text.begin(), text.end(), [](char byte) {
           return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                  (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == ',' ||
                  byte == ' ';
         });
}

HttpAnswer preflight(const HttpRequest& request) {
  const std::string_view asked = header(request, "access-control-request-headers");
  HttpAnswer answer{.status = 204, .content_type = ""};
  answer.headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                    {"Access-Control-Max-Age", "600"}};
  if (!asked.empty() && is_header_list(asked))
    answer.headers.emplace_back("Access-Control-Allow-Headers", asked);
  return answer;
}

HttpAnswer refusal(const HttpRequest& request, int status, std::string type, std::string message) {
  return error_answer(request.path,
                      {.status = status, .type = std::move(type), .message = std::move(message)});
}

std::string in_brackets(const std::string& hint) {
  return hint.empty() ? "" : cat(" (", hint, ")");
}

}  // namespace

bool HttpGate::is_our_host(std::string_view host) const {
  const std::string name = host_name(host);
  return name == "localhost" || name.ends_with(".localhost") || is_numeric_address(name) ||
         contains(options_.hosts, name);
}

bool HttpGate::is_welcome_origin(std::string_view origin, std::string_view host) const {
  // http and https alike: TLS may end in front of us.
  const size_t scheme = origin.find("://");
  const bool own = scheme != std::string_view::npos && origin.substr(scheme + 3) == host;
  return own || contains(options_.origins, origin);
}

Admission HttpGate::admit(HttpRequest& request) const {
  const std::string_view host = header(request, "host"), origin = header(request, "origin");
  // HTTP/1.0 has no Host; browsers do not speak it.
  if (!host.empty() && !is_our_host(host))
    return {.answer = refusal(
                request, 421, "invalid_request_error",
                cat("this server does not answer for the host ", host,
                    ", which is not among its allowed hosts", in_brackets(options_.host_hint)))};
  Admission admission;
  if (!origin.empty()) {
    if (!is_welcome_origin(origin, host))
      return {.answer = refusal(request, 403, "permission_error",
                                cat("pages of ", origin,
                                    " may not use this server: not one of its allowed origins",
                                    in_brackets(options_.origin_hint)))};
    admission.headers = {{"Access-Control-Allow-Origin", std::string(origin)},
                         {"Access-Control-Expose-Headers", "x-request-id"},
                         {"Vary", "Origin"}};
    if (request.method == "OPTIONS" && !header(request, "access-control-request-method").empty()) {
      admission.answer = preflight(request);
      return admission;
    }
  }
  if (options_.keys.empty() || is_open_to_all(request)) return admission;
  if (std::optional<std::string> salt = options_.keys.salt_of(presented_key(request))) {
    request.salt = *std::move(salt);
  } else {
    admission.answer = refusal(request, 401, "authentication_error",
                               "this server asks for an API key: Authorization: Bearer KEY");
    admission.answer->headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  return admission;
}

}  // namespace slip
