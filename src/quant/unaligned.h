// Values of files: their bytes may begin anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace slip {

template <class T>
T load_unaligned(const std::byte* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + size_t(index) * sizeof(T), sizeof(T));
  return value;
}

}  // namespace slip
