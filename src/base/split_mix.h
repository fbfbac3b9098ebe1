// The finaliser of splitmix64: neighbouring numbers become unrelated ones. The same everywhere and
// for good: signs of coded caches and seeds of answers hang on it.
#pragma once

#include <cstdint>

namespace slip {

inline constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15u;  // what a state grows by

constexpr uint64_t split_mix(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
  return state ^ (state >> 31);
}

}  // namespace slip
