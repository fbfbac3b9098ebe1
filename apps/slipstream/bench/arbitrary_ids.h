// Token ids for benchmarks. Speed does not depend on them, but experts do, so they vary.
#pragma once

#include <cstdint>
#include <vector>

namespace slip {

inline int32_t arbitrary_id(int64_t position, int64_t vocabulary) {
  constexpr int64_t kStride = 7919;  // a prime, so that all tokens come before one comes again
  return int32_t((position * kStride + 13) % vocabulary);
}

// Of positions 0 to `count` - 1.
inline std::vector<int32_t> arbitrary_ids(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(arbitrary_id(i, vocabulary));
  return ids;
}

}  // namespace slip
