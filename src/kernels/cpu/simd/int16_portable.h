// Thirty-two 16-bit integers in plain C++: how codes become levels, and dot products of pairs. Same
// functions as int16_avx512.h and int16_avx2.h.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/vec_portable.h"

namespace slip {
namespace {

struct I16x32 {
  uint16_t v[32];
};

// Queries whose products with one vector of levels are summed side by side.
constexpr int kPairQueries = 4;

template <class Fn>
inline I16x32 each_word(Fn&& fn) {
  I16x32 r;
  for (int i = 0; i < 32; ++i) r.v[i] = uint16_t(fn(i));
  return r;
}

inline I16x32 load_words(const uint16_t* p) {
  return each_word([&](int i) { return p[i]; });
}
inline void store_words(int16_t* p, const I16x32& x) { std::memcpy(p, x.v, sizeof(x.v)); }

// To the left by kBits, or to the right if negative.
template <int kBits>
inline I16x32 shift(const I16x32& x) {
  if constexpr (kBits >= 0)
    return each_word([&](int i) { return x.v[i] << kBits; });
  else
    return each_word([&](int i) { return x.v[i] >> -kBits; });
}
inline I16x32 keep_bits(const I16x32& x, uint16_t mask) {
  return each_word([&](int i) { return x.v[i] & mask; });
}
inline I16x32 either(const I16x32& a, const I16x32& b) {
  return each_word([&](int i) { return a.v[i] | b.v[i]; });
}

// The upper byte of every word, sign-extended.
inline I16x32 upper_byte(const I16x32& x) {
  return each_word([&](int i) { return int16_t(x.v[i]) >> 8; });
}

// Sixteen bytes, and the one that bits 8 to 11 of each word name; bits 12 to 15 are zero.
struct Book {
  const int8_t* levels;
};
inline Book load_book(const int8_t* book) { return {book}; }
inline I16x32 look_up(const Book& book, const I16x32& x) {
  return each_word([&](int i) { return int16_t(book.levels[x.v[i] >> 8]); });
}

// Integral values, in order.
inline void store_int16(int16_t* p, const F32x16& values) {
  for (int i = 0; i < 16; ++i) p[i] = int16_t(values.v[i]);
}

inline void store_int8(int8_t* p, const F32x16& values) {
  for (int i = 0; i < 16; ++i) p[i] = int8_t(values.v[i]);
}

// out[q][t] = 16 sums over `pairs` of level 2i * x[2i] + level 2i + 1 * x[2i + 1]. Levels of T
// blocks, each [pairs, 16, 2]; x of Q rows, x_stride apart.
template <int Q, int T>
inline void pair_dot(const int16_t* levels, int64_t pairs, const int16_t* x, int64_t x_stride,
                     F32x16 (&out)[Q][T]) {
  for (int q = 0; q < Q; ++q) {
    for (int t = 0; t < T; ++t) {
      int32_t total[32] = {};  // even and odd ones apart: compilers have vectors for that
      for (int64_t i = 0; i < pairs; ++i) {
        const int16_t* level = levels + (t * pairs + i) * 32;
        const int16_t* pair = x + q * x_stride + 2 * i;
        int16_t both[32];
        for (int lane = 0; lane < 32; lane += 2) both[lane] = pair[0], both[lane + 1] = pair[1];
        for (int lane = 0; lane < 32; ++lane) total[lane] += int32_t(level[lane]) * both[lane];
      }
      out[q][t] = each([&](int lane) { return float(total[2 * lane] + total[2 * lane + 1]); });
    }
  }
}

}  // namespace
}  // namespace slip
