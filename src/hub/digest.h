// The two checksums by which a hub names its files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace slip {

class Digest {
 public:
  static Digest sha256();
  // What git calls a file of that size: SHA-1 over a short header and the bytes.
  static Digest git_blob(uint64_t size);

  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  ~Digest();

  void add(std::span<const char> bytes);
  // In hexadecimal; nothing may be added afterwards.
  std::string finish();

 private:
  struct State;  // OpenSSL's
  explicit Digest(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace slip
