// Everything that `serve` was told.
#pragma once

#include <string>
#include <vector>

#include "server/api.h"
#include "server/auth.h"
#include "slipstream/common/environment.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/speculate_flags.h"

namespace slip {

struct ServeOptions {
  ModelFlags model;
  SpeculateFlags speculation;
  std::string positional_model;
  std::string host = "127.0.0.1";
  int64_t port = 8080;
  std::string api_key_file;
  KeyRing keys;  // of that file and the environment, as settle() finds them
  bool insecure = false;
  std::string tls_certificate, tls_key;
  std::vector<std::string> allowed_hosts, allowed_origins;
  int64_t max_users = 0;  // 0: as many as suit the memory
  int64_t max_queue = 256;
  std::string max_body = "32MiB";
  uint64_t max_body_bytes = 0;  // what settle() makes of it
  std::vector<std::string> aliases;
  std::string reasoning_field = "reasoning_content";
  bool strict_template = false;
  std::string config;
  std::string log_format = "text";
  double shutdown_seconds = 30;
  bool dry_run = false;

  void add_to(Flags& flags);

  // Reads --config and the keys, and refuses what makes no sense.
  Status settle(Flags& flags);
  // Fills `keys`. Refuses addresses that others can reach without one.
  Status read_keys(const UserEnvironment& user);

  ReasoningField reasoning() const;
};

// What --allowed-host and --allowed-origin are given, as browsers write it in Host and Origin; what
// they could never write is refused.
Result<std::string> normalised_host(const std::string& name);
Result<std::string> normalised_origin(const std::string& url);

// Whether only this machine can reach it.
bool is_loopback(const std::string& host);
// Whether it stands for all addresses of this machine.
bool is_any(const std::string& host);

}  // namespace slip
