// A set of byte values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace slip {

class ByteSet {
 public:
  constexpr ByteSet() = default;

  static constexpr ByteSet range(uint8_t first, uint8_t last) {
    ByteSet set;
    for (int byte = first; byte <= last; ++byte) set.add(uint8_t(byte));
    return set;
  }
  static constexpr ByteSet of(std::string_view bytes) {
    ByteSet set;
    for (const char byte : bytes) set.add(uint8_t(byte));
    return set;
  }

  constexpr void add(uint8_t byte) { words_[byte >> 6] |= uint64_t(1) << (byte & 63); }
  constexpr bool contains(uint8_t byte) const { return words_[byte >> 6] >> (byte & 63) & 1; }
  constexpr bool empty() const { return !(words_[0] | words_[1] | words_[2] | words_[3]); }

  constexpr ByteSet& operator|=(const ByteSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  constexpr ByteSet& operator&=(const ByteSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  constexpr bool operator==(const ByteSet&) const = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 finds a 0 in what a default compares with
  constexpr auto operator<=>(const ByteSet&) const = default;

 private:
  std::array<uint64_t, 4> words_{};
};

}  // namespace slip
