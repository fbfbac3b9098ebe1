// Where attention_tiles.cuh gets keys and values from: registers that a lane fills from memory, out
// of which come operands for tensor cores, in f16.
//
// Of a chunk of 64 positions warp w takes keys of positions [16 w, 16 w + 16) and of values a
// quarter of the dimensions. With g = lane / 4 and j = lane % 4:
//   keys    octet (n, i): position 16 w + 8 n + g, dimensions 32 i + 8 j + 0 .. 7, pairs of which
//           are the operands of two steps of 16 dimensions
//   values  octet (s, u): of positions 32 (s / 2) + 8 j + 4 (s % 2) + 0 .. 3 the dimensions
//           2 u and 2 u + 1 of the lane's piece, which begins at quarter + piece * g; operands are
//           pairs of positions
// Codes (kv_codes.h) are kept in this order; rows of a plain cache, of the tail and of the step
// have to be brought into it.
#pragma once

#include <type_traits>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/kv_codes.cuh"

namespace slip {

__device__ __forceinline__ int lane_id() { return int(threadIdx.x) % kWarp; }
__device__ __forceinline__ int warp_id() { return int(threadIdx.x) / kWarp; }

// Of a normal float; exact for powers of two.
__device__ __forceinline__ float reciprocal(float x) {
  const float y = reciprocal_fast(x);
  return __fmaf_rn(__fmaf_rn(-x, y, 1.0f), y, y);
}

// kWords words at p, aligned to their size. A stream is loaded where it is asked for, other words
// where the compiler sees fit.
template <int kWords, bool kStream>
__device__ __forceinline__ void load_words(const void* p, uint32_t* words) {
  if constexpr (kWords % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      const uint32_t* at = static_cast<const uint32_t*>(p) + i;
      const uint4 x = kStream ? load_stream(at) : __ldg(reinterpret_cast<const uint4*>(at));
      words[i] = x.x, words[i + 1] = x.y, words[i + 2] = x.z, words[i + 3] = x.w;
    }
  } else if constexpr (kWords == 2) {
    const uint2 x = __ldg(static_cast<const uint2*>(p));
    words[0] = x.x, words[1] = x.y;
  } else {
    words[0] = __ldg(static_cast<const uint32_t*>(p));
  }
}

// Elements of rows: how many words a few of them take, and pair u of them as f16.
struct Bf16Rows {
  using Value = uint16_t;
  static constexpr float kFactor = 1;
  __device__ static uint32_t pair(const uint32_t* words, int u) {
    return saturated_halves(__uint_as_float(words[u] << 16),
                            __uint_as_float(words[u] & 0xffff0000));
  }
};
struct Fp8Rows {
  using Value = uint8_t;
  static constexpr float kFactor = kFp8Factor;
  __device__ static uint32_t pair(const uint32_t* words, int u) {  // as in unpack_fp8()
    const uint32_t wide = __byte_perm(words[u / 2], 0, u % 2 == 0 ? 0x1404 : 0x3424);
    return ((wide >> 1) & 0x3f803f80) | (wide & 0x80008000);
  }
};
struct F32Rows {  // of the step, aligned to floats alone
  using Value = float;
  static constexpr float kFactor = 1;
  __device__ static uint32_t pair(const uint32_t* words, int u) {
    return saturated_halves(__uint_as_float(words[2 * u]), __uint_as_float(words[2 * u + 1]));
  }
};
struct PackedF32Rows {  // the same, rounded when they are loaded: half of the registers
  using Value = float;
  __device__ static uint32_t pair(const uint32_t* words, int u) { return words[u]; }
};

// Words that hold so many elements.
template <class Rows>
constexpr int words_of(int count) {
  const bool packed = std::is_same_v<Rows, PackedF32Rows>;
  return count * (packed ? 2 : int(sizeof(typename Rows::Value))) / 4;
}

// Rows of a chunk: `stride` values from one position to the next; those from `valid` on may hold
// anything and are read as zero.
template <class Rows>
struct RowPage {
  const typename Rows::Value* rows;
  int64_t stride;
  int valid;

  // kCount values of a position; kWhole: all positions are valid.
  template <int kCount, bool kWhole>
  __device__ __forceinline__ void load(int position, int dim, uint32_t* words) const {
    constexpr int kWords = words_of<Rows>(kCount);
    const auto* at = rows + position * stride + dim;
    if (!kWhole && position >= valid) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = 0;
    } else if constexpr (std::is_same_v<Rows, PackedF32Rows>) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = saturated_halves(at[2 * i], at[2 * i + 1]);
    } else if constexpr (sizeof(typename Rows::Value) == 4) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = __float_as_uint(at[i]);
    } else {
      load_words<kWords, kWhole>(at, words);
    }
  }
};

// Scales of the columns of scores that a lane has: positions 16 w + 8 n + 2 j and the next.
struct NoScales {
  static constexpr bool kScaled = false;
};
struct ColumnScales {
  static constexpr bool kScaled = true;
  uint32_t pairs[2];

  __device__ __forceinline__ void load(const uint16_t* scales) {  // of the chunk
    const auto* words = reinterpret_cast<const uint32_t*>(scales) + warp_id() * 8 + lane_id() % 4;
    load_words<1, false>(words, pairs);
    load_words<1, false>(words + 4, pairs + 1);
  }
  __device__ __forceinline__ float at(int n, int column) const {
    return __uint_as_float(column == 0 ? pairs[n] << 16 : pairs[n] & 0xffff0000);
  }
};

// Keys of a chunk in kParts parts, of which one is held at a time. kInLoop: parts are read in a
// loop, for the sake of little code.
template <class Rows, int kDim, int kPartCount, bool kWhole, bool kLoop = false>
struct RowKeys {
  static constexpr int kParts = kPartCount;
  static constexpr bool kInLoop = kLoop;
  static constexpr int kSteps = kDim / 32 / kParts;  // octets (n, i) of a part
  static constexpr int kWords = words_of<Rows>(8);
  uint32_t words[2][kSteps][kWords];
  NoScales scales;

  __device__ __forceinline__ void load(const RowPage<Rows>& page, int part) {
    const int g = lane_id() / 4, j = lane_id() % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < kSteps; ++i)
        page.template load<8, kWhole>(16 * warp_id() + 8 * n + g, 32 * (part * kSteps + i) + 8 * j,
                                      words[n][i]);
  }

  // Of the part that is held.
  __device__ __forceinline__ void octet(int, int n, int i, uint32_t (&operands)[4]) const {
#pragma unroll
    for (int u = 0; u < 4; ++u) operands[u] = Rows::pair(words[n][i], u);
  }
};

// Values of a chunk, likewise; a part is some of the four steps of 16 positions.
template <class Rows, int kDim, int kPartCount, bool kWhole, bool kLoop = false>
struct RowValues {
  static constexpr int kParts = kPartCount;
  static constexpr bool kInLoop = kLoop;
  static constexpr int kSteps = 4 / kParts;
  static constexpr int kPiece = kDim / 32;  // dimensions of a lane
  static constexpr int kWords = words_of<Rows>(kPiece);
  uint32_t words[kSteps][4][kWords];
  NoScales scales;

  __device__ __forceinline__ void load(const RowPage<Rows>& page, int part) {
    const int g = lane_id() / 4, j = lane_id() % 4;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int s = part * kSteps + step;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        page.template load<kPiece, kWhole>(32 * (s / 2) + 8 * j + 4 * (s % 2) + k,
                                           warp_id() * (kDim / 4) + kPiece * g, words[step][k]);
    }
  }

  __device__ __forceinline__ void octet(int, int step, int u, uint32_t (&operands)[4]) const {
    uint32_t pairs[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) pairs[k] = Rows::pair(words[step][k], u);
    operands[0] = __byte_perm(pairs[0], pairs[1], 0x5410);
    operands[1] = __byte_perm(pairs[2], pairs[3], 0x5410);
    operands[2] = __byte_perm(pairs[0], pairs[1], 0x7632);
    operands[3] = __byte_perm(pairs[2], pairs[3], 0x7632);
  }
};

// Four codes as f16: numbers of magnitudes in the nibbles of `numbers`, signs above bytes.
__device__ __forceinline__ void expand_codes(const MagnitudeTable& table, uint32_t numbers,
                                             uint32_t signs, uint32_t* operands) {
  const uint32_t high =
      masked_or(signs, 0x80808080, __byte_perm(table.high[0], table.high[1], numbers));
  const uint32_t low = __byte_perm(table.low[0], table.low[1], numbers);
  operands[0] = __byte_perm(low, high, 0x5140);
  operands[1] = __byte_perm(low, high, 0x7362);
}

__device__ __forceinline__ void expand_bytes(uint32_t bytes, uint32_t* operands) {
  const __half2 minus = __half2half2(__ushort_as_half(0xe480));  // -(1024 + 128)
  const uint32_t shifted = bytes ^ 0x80808080;
  operands[0] = half2_bits(__hadd2(bits_half2(__byte_perm(shifted, 0x64646464, 0x4140)), minus));
  operands[1] = half2_bits(__hadd2(bits_half2(__byte_perm(shifted, 0x64646464, 0x4342)), minus));
}

// A coded page, whose words lie in the order of the octets.
struct CodePage {
  const uint8_t* codes;
  const uint16_t* scales;  // of its positions
};

// In parts of 16 octets, which is all of a head of kTileDim; kHeld of them are held, all or one.
// Scales come with the first.
template <int kBits, int kDim, int kHeld>
struct Codes {
  static constexpr int kParts = kDim / kTileDim;
  static constexpr bool kInLoop = kHeld < kParts;
  static constexpr int kWords = kTileDim * kBits / 64;  // of a part
  static constexpr int kLaneWords = kParts * kWords;    // of a chunk
  uint32_t held[kHeld][kWords];
  ColumnScales scales;

  __device__ __forceinline__ void load(const CodePage& page, int part) {
    constexpr int kPieces = kWords / 4;
    const uint8_t* at =
        page.codes + ((warp_id() * kParts + part) * kPieces * kWarp + lane_id()) * 16;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece)
      load_words<4, true>(at + piece * kWarp * 16, held[kInLoop ? 0 : part] + 4 * piece);
    if (part == 0) scales.load(page.scales);
  }

  __device__ __forceinline__ void octet(const MagnitudeTable& table, int part, int o,
                                        uint32_t (&operands)[4]) const {
    const uint32_t(&words)[kWords] = held[kInLoop ? 0 : part];
    if constexpr (kBits == 8) {
      expand_bytes(words[2 * o], operands);
      expand_bytes(words[2 * o + 1], operands + 2);
    } else if constexpr (kBits == 4) {
      const uint32_t numbers = words[o] & 0x77777777;
      expand_codes(table, numbers, words[o], operands);
      expand_codes(table, numbers >> 16, words[o] << 4, operands + 2);
    } else {
      constexpr int kOctets = kBits == 3 ? 2 : 4;  // in a word of magnitudes
      constexpr int kWidth = 4 / kOctets;
      constexpr uint32_t kMask = kBits == 3 ? 0x33333333 : 0x11111111;
      const int group = o / 4 * kBits, q = o % 4;
      const uint32_t numbers = words[group + q / kOctets] >> (kWidth * (q % kOctets)) & kMask;
      const uint32_t signs = words[group + kBits - 1] << (2 * q);
      expand_codes(table, numbers, signs, operands);
      expand_codes(table, numbers >> 16, signs << 1, operands + 2);
    }
  }
};

template <int kBits, int kDim, int kHeld>
struct CodedKeys : Codes<kBits, kDim, kHeld> {
  static constexpr int kSteps = kTileDim / 32;
  const MagnitudeTable& table;

  __device__ explicit CodedKeys(const MagnitudeTable& magnitudes) : table(magnitudes) {}
  __device__ __forceinline__ void octet(int part, int n, int i, uint32_t (&operands)[4]) const {
    Codes<kBits, kDim, kHeld>::octet(table, part, n * kSteps + i, operands);
  }
};

template <int kBits, int kDim, int kHeld>
struct CodedValues : Codes<kBits, kDim, kHeld> {
  static constexpr int kSteps = 4 * kTileDim / kDim;
  const MagnitudeTable& table;

  __device__ explicit CodedValues(const MagnitudeTable& magnitudes) : table(magnitudes) {}
  __device__ __forceinline__ void octet(int part, int step, int u, uint32_t (&operands)[4]) const {
    Codes<kBits, kDim, kHeld>::octet(table, part, step * (kDim / 64) + u, operands);
  }
};

// A cache: where whole pages come from, and, if it is plain, the rows of a page that is not whole.
template <class Rows, int kHeadDim>
struct PlainCache {
  static constexpr int kDim = kHeadDim;
  static constexpr bool kCoded = false;
  using Keys = RowKeys<Rows, kDim, 1, true>;
  template <bool kWhole>
  using Values = RowValues<Rows, kDim, 1, kWhole>;
  using Page = RowPage<Rows>;
  using Partial = Rows;
};

template <int kKeyBits, int kValueBits, int kHeadDim>
struct CodedCache {
  static constexpr int kDim = kHeadDim;
  static constexpr bool kCoded = true;
  using Keys = CodedKeys<kKeyBits, kDim, kDim / kTileDim>;
  template <bool>
  using Values = CodedValues<kValueBits, kDim, kDim / kTileDim>;
  using PartOfKeys = CodedKeys<kKeyBits, kDim, 1>;
  using PartOfValues = CodedValues<kValueBits, kDim, 1>;
  using Page = CodePage;
};

// Few enough registers for keys and values of a chunk ahead, whatever else there is.
template <class Cache>
constexpr bool is_light() {
  return sizeof(typename Cache::Keys) + sizeof(typename Cache::template Values<true>) <= 300;
}

}  // namespace slip
