#include "slipstream/serve/options.h"

#include <arpa/inet.h>

#include "base/ascii.h"
#include "base/files.h"
#include "slipstream/serve/config.h"

namespace slip {

void ServeOptions::add_to(Flags& flags) {
  flags.positional("MODEL", &positional_model, "A folder or a repository id; default: minnow");
  model.add_to(flags);
  model.add_download_to(flags);
  speculation.add_to(flags);
  flags.option("--host", &host, "ADDRESS",
               "Address to listen on; one that other machines can reach needs an API key");
  flags.option("--port", &port, "N", "Port to listen on; 0: any that is free");
  flags.option("--api-key-file", &api_key_file, "FILE",
               "File of API keys that clients may present, one per line; the environment variable "
               "SLIPSTREAM_API_KEY may hold another");
  flags.flag("--insecure", &insecure, "Listen to other machines without asking for a key");
  flags.option("--tls-cert", &tls_certificate, "FILE", "Certificate chain for https (PEM)");
  flags.option("--tls-key", &tls_key, "FILE", "Private key of the certificate (PEM)");
  flags.option(
      "--allowed-host", &allowed_hosts, "NAME",
      "Another host name that clients reach this server by, e.g. host.docker.internal; may be "
      "repeated");
  flags.option(
      "--allowed-origin", &allowed_origins, "URL",
      "A web site whose pages may use this server, e.g. https://chat.example; may be repeated");
  flags.option(
      "--max-users", &max_users, "N",
      "Number of answers made at once, others wait; 0: as many as the memory has room for. Without "
      "--ctx one may be as long as the model allows, while the others wait");
  flags.option("--max-queue", &max_queue, "N",
               "Number of requests that may wait; further ones are refused");
  flags.option("--max-body", &max_body, "SIZE", "Size of the longest request that is accepted");
  flags.option("--alias", &aliases, "NAME",
               "Another name that clients may ask for the model by; may be repeated");
  flags.choice(
      "--reasoning-field", &reasoning_field, {"reasoning_content", "reasoning", "both", "none"},
      "Field of chat completions that holds the model's thoughts; none: the content, between tags");
  flags.flag(
      "--strict-template", &strict_template,
      "Give messages to the model's template as they are, without merging late system messages "
      "into the first");
  flags.option(
      "--config", &config, "FILE",
      "Read settings from a file: these flags' names as NAME = VALUE lines or JSON; flags on the "
      "command line win");
  flags.choice("--log-format", &log_format, {"text", "json"},
               "Format of log lines (on standard error)");
  flags.option("--shutdown-seconds", &shutdown_seconds, "S",
               "Seconds that answers have to end after SIGTERM; a second signal stops at once");
  flags.flag("--dry-run", &dry_run, "Print the memory that would be used, and exit");
  flags.footer(
      "Examples:\n"
      "  slipstream serve                            minnow on http://127.0.0.1:8080\n"
      "  slipstream serve DIR -c 64K --max-users 8   eight at once, 64K positions each\n"
      "  slipstream serve DIR --max-users 1          one agent, the model's length\n"
      "  slipstream serve DIR --dry-run              what fits?\n"
      "  SLIPSTREAM_API_KEY=... slipstream serve --host 0.0.0.0   for the local network");
}

Status ServeOptions::settle(Flags& flags) {
  SLIP_TRY_STATUS(model.take_positional(positional_model));
  if (!config.empty()) {
    SLIP_TRY(const Flags::Settings settings, read_config_file(config));
    if (Status added = flags.add_settings(settings); !added.ok())
      return std::move(added).failure().in(config);
  }
  if (!positional_model.empty()) model.model = positional_model;  // the file may name another
  SLIP_TRY_STATUS(model.check());
  if (port < 0 || port > 65535) return error("--port is 0 to 65535, not ", port);
  if (max_users < 0 || max_users > 1024) return error("--max-users is 0 to 1024, not ", max_users);
  if (max_queue < 0) return error("--max-queue must not be negative");
  if (!(shutdown_seconds >= 0)) return error("--shutdown-seconds must not be negative");
  if (tls_certificate.empty() != tls_key.empty())
    return error("--tls-cert and --tls-key belong together");
  SLIP_TRY(max_body_bytes, of_flag("--max-body", parse_size(max_body)));
  constexpr uint64_t kShortestBody = 1024, kLongestBody = uint64_t{1} << 30;
  if (max_body_bytes < kShortestBody || max_body_bytes > kLongestBody)
    return error("--max-body is 1KiB to 1GiB, not ", max_body);
  for (const std::string& alias : aliases)
    if (trimmed(alias).empty()) return error("--alias needs a name, not \"", alias, "\"");
  for (std::string& name : allowed_hosts) {
    SLIP_TRY(name, normalised_host(name));
  }
  for (std::string& origin : allowed_origins) {
    SLIP_TRY(origin, normalised_origin(origin));
  }
  SLIP_TRY_STATUS(speculation.check());
  return read_keys(user_environment());
}

Status ServeOptions::read_keys(const UserEnvironment& user) {
  keys = KeyRing();
  if (!api_key_file.empty()) {
    constexpr uint64_t kLongest = 1 << 20;
    SLIP_TRY(const std::string text, read_text_file(api_key_file, kLongest));
    SLIP_TRY_STATUS(keys.add(text, api_key_file));
    if (keys.empty()) return error(api_key_file, ": there is no key in it");
  }
  SLIP_TRY_STATUS(keys.add(user.api_key, "SLIPSTREAM_API_KEY"));
  if (keys.empty() && !insecure && !is_loopback(host))
    return error("--host ", host,
                 " lets other machines in, so clients must present a key: give one with "
                 "--api-key-file or SLIPSTREAM_API_KEY (or --insecure to let everybody in)");
  return {};
}

ReasoningField ServeOptions::reasoning() const {
  if (reasoning_field == "reasoning") return ReasoningField::reasoning;
  if (reasoning_field == "both") return ReasoningField::both;
  if (reasoning_field == "none") return ReasoningField::none;
  return ReasoningField::reasoning_content;
}

Result<std::string> normalised_host(const std::string& name) {
  std::string host = lower_ascii(name);
  if (host.ends_with('.')) host.pop_back();
  if (host.empty() || host.find_first_of("/: ") != std::string::npos)
    return error("--allowed-host takes a name without scheme and port, as chat.example, not \"",
                 name, "\"");
  return host;
}

Result<std::string> normalised_origin(const std::string& url) {
  std::string origin = lower_ascii(url);
  if (origin == "*" || origin == "null") return origin;
  if (origin.ends_with('/')) origin.pop_back();
  const size_t colon = origin.find("://");
  const size_t host = colon == std::string::npos ? std::string::npos : colon + 3;
  if (host == std::string::npos || colon == 0 || host >= origin.size() ||
      origin.find_first_of("/?# ", host) != std::string::npos)
    return error("--allowed-origin takes scheme and host, as https://chat.example, not \"", url,
                 "\"");
  // Browsers leave out the port that a scheme has anyway.
  for (const auto& [scheme, port] : {std::pair("http://", ":80"), std::pair("https://", ":443")})
    if (origin.starts_with(scheme) && origin.ends_with(port))
      origin.erase(origin.size() - std::string_view(port).size());
  return origin;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool is_any(const std::string& host) {
  in_addr v4;
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6;
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

}  // namespace slip
