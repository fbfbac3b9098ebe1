// Numbers in the bytes of a file, which need not lie where their type would have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace slip {

template <class T>
T load(const std::byte* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + size_t(index) * sizeof(T), sizeof(T));
  return value;
}

}  // namespace slip
