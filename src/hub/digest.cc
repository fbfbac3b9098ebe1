#include "hub/digest.h"

#include <openssl/evp.h>

#include "base/check.h"
#include "base/text.h"

namespace slip {

struct Digest::State {
  EVP_MD_CTX* context = ::EVP_MD_CTX_new();

  explicit State(const EVP_MD* kind) {
    check(context && ::EVP_DigestInit_ex(context, kind, nullptr) == 1, "OpenSSL gives no digest");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { ::EVP_MD_CTX_free(context); }
};

Digest::Digest(std::unique_ptr<State> state) : state_(std::move(state)) {}
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

Digest Digest::sha256() { return Digest(std::make_unique<State>(::EVP_sha256())); }

Digest Digest::git_blob(uint64_t size) {
  Digest digest(std::make_unique<State>(::EVP_sha1()));
  const std::string header = cat("blob ", size);
  digest.add({header.c_str(), header.size() + 1});  // with the zero behind it
  return digest;
}

void Digest::add(std::span<const char> bytes) {
  check(::EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "digest");
}

std::string Digest::finish() {
  constexpr char kDigits[] = "0123456789abcdef";
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int count = 0;
  check(::EVP_DigestFinal_ex(state_->context, bytes, &count) == 1, "digest");
  std::string text;
  for (unsigned int i = 0; i < count; ++i) text += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  return text;
}

}  // namespace slip
