// API keys. Only their hashes are kept, and comparing takes the same time whatever is presented.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http.h"

namespace slip {

class KeyRing {
 public:
  // One key per line; empty lines and those that begin with # are skipped. `source` starts errors.
  Status add(std::string_view lines, const std::string& source);

  bool empty() const { return keys_.empty(); }

  // For a key on the ring: what keeps the prompts remembered for it apart from those of others.
  std::optional<std::string> salt_of(std::string_view key) const;

 private:
  using Hash = std::array<uint8_t, 32>;  // SHA-256
  static Hash hash_of(std::string_view purpose, std::string_view text);

  std::vector<Hash> keys_;
};

// The key that a request presents: `Authorization: Bearer` as OpenAI's clients send it, or
// `x-api-key` as Anthropic's do. Empty: none.
std::string_view presented_key(const HttpRequest& request);

}  // namespace slip
