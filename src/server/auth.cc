#include "server/auth.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

#include "base/ascii.h"

namespace slip {
namespace {

bool is_visible(char byte) { return byte > ' ' && byte < 127; }

}  // namespace

KeyRing::Hash KeyRing::hash_of(std::string_view purpose, std::string_view text) {
  const std::string both = cat(purpose, ":", text);
  Hash hash;
  SHA256(reinterpret_cast<const unsigned char*>(both.data()), both.size(), hash.data());
  return hash;
}

Status KeyRing::add(std::string_view lines, const std::string& source) {
  for (int number = 1; !lines.empty(); ++number) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view key = trimmed(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (key.empty() || key[0] == '#') continue;
    // Headers could not carry others.
    if (!std::all_of(key.begin(), key.end(), is_visible))
      return error(source, " line ", number, ": a key is one word of visible ASCII characters");
    keys_.push_back(hash_of("key", key));
  }
  return {};
}

std::optional<std::string> KeyRing::salt_of(std::string_view key) const {
  const Hash hash = hash_of("key", key);
  int known = 0;  // all are compared, so that the time tells nothing
  for (const Hash& mine : keys_) known |= CRYPTO_memcmp(mine.data(), hash.data(), hash.size()) == 0;
  if (!known) return std::nullopt;
  const Hash salt = hash_of("salt", key);
  return std::string(salt.begin(), salt.end());
}

std::string_view presented_key(const HttpRequest& request) {
  if (const auto found = request.headers.find("authorization"); found != request.headers.end()) {
    constexpr std::string_view kScheme = "bearer ";
    const std::string_view value = found->second;
    const bool bearer = value.size() > kScheme.size() &&
                        std::equal(kScheme.begin(), kScheme.end(), value.begin(),
                                   [](char mine, char theirs) { return mine == (theirs | 0x20); });
    if (bearer) return trimmed(value.substr(kScheme.size()));
  }
  const auto found = request.headers.find("x-api-key");
  return found == request.headers.end() ? std::string_view() : trimmed(found->second);
}

}  // namespace slip
