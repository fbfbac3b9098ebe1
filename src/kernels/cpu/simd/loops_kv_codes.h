// Attention over one coded page. Included once per instruction set, after loops_attention.h and
// loops_turbo.h.
//
// Keys and values are both matrices of small integers that multiply one vector of 16-bit integers
// per query: keys have an output per position and sum over dimensions, values have an output per
// dimension and sum over positions. Sums of integers are exact, so that a query's result does not
// depend on the queries beside it.
#pragma once

#include <utility>

#include "kernels/cpu/simd/loops.h"

namespace slip {
namespace {

// Words of 16 bits hold fields of several vectors of levels: field j of word i is value i of vector
// j. kVectors vectors lie in kWords words.
template <int kBits>
struct CodeFields {
  static constexpr int kVectors = 16 / kBits;
  static constexpr int kWords = 32;
  // The index of vector j, moved to where look_up() expects it.
  template <int j>
  static I16x32 index(const uint16_t* words) {
    constexpr uint16_t kMask = ((1 << kBits) - 1) << 8;
    return keep_bits(shift<8 - kBits * j>(load_words(words)), kMask);
  }
};

// The lower two bits of sixteen vectors in two rows of words, their upper bits in a third.
template <>
struct CodeFields<3> {
  static constexpr int kVectors = 16;
  static constexpr int kWords = 96;
  template <int j>
  static I16x32 index(const uint16_t* words) {
    const I16x32 lower = shift<8 - 2 * (j % 8)>(load_words(words + j / 8 * 32));
    const I16x32 upper = shift<10 - j>(load_words(words + 64));
    return either(keep_bits(lower, 0x0300), keep_bits(upper, 0x0400));
  }
};

// Where codes are read. Those at the same place of `next` will be read after this matrix: they are
// asked for now and arrive while its levels are multiplied.
struct CodeReader {
  const uint16_t* words;
  const uint16_t* next;
  void advance(int64_t count) { words += count, next += count; }
  void prefetch(int64_t count) const {
    for (int64_t i = 0; i < count; i += 32) __builtin_prefetch(next + i, 0, 2);
  }
};

template <int kBits, class Book, int... j>
inline void unpack_group(const uint16_t* words, const Book& book, int16_t* levels,
                         std::integer_sequence<int, j...>) {
  (store_words(levels + j * 32, look_up(book, CodeFields<kBits>::template index<j>(words))), ...);
}

template <int kBits>
inline void unpack_fields(CodeReader codes, const int8_t* book, int64_t first, int64_t vectors,
                          int16_t* levels) {
  using Fields = CodeFields<kBits>;
  const auto loaded = load_book(book);
  codes.advance(first / Fields::kVectors * Fields::kWords);
  for (int64_t v = 0; v < vectors; v += Fields::kVectors, codes.advance(Fields::kWords)) {
    codes.prefetch(Fields::kWords);
    unpack_group<kBits>(codes.words, loaded, levels + v * 32,
                        std::make_integer_sequence<int, Fields::kVectors>());
  }
}

inline void unpack_bytes(CodeReader codes, int64_t first, int64_t vectors, int16_t* levels) {
  codes.advance(first / 2 * 32);
  for (int64_t v = 0; v < vectors; v += 2, codes.advance(32)) {
    codes.prefetch(32);
    const I16x32 both = load_words(codes.words);
    store_words(levels + v * 32, upper_byte(shift<8>(both)));
    store_words(levels + (v + 1) * 32, upper_byte(both));
  }
}

// A matrix of `outputs` x `steps` levels and what it multiplies: [queries, steps].
struct CodedProduct {
  const CodedMatrix& matrix;
  const uint16_t* next;  // codes that will be read after these
  int64_t outputs;
  int64_t steps;
  const int16_t* x;
  int64_t queries;
  int16_t* levels;  // room for two blocks
};

// Vectors [first, first + vectors) of the levels.
inline void unpack(const CodedProduct& product, int64_t first, int64_t vectors) {
  const CodeReader codes{product.matrix.codes, product.next};
  const int8_t* book = product.matrix.book;
  switch (product.matrix.bits) {
    case 8: return unpack_bytes(codes, first, vectors, product.levels);
    case 4: return unpack_fields<4>(codes, book, first, vectors, product.levels);
    case 3: return unpack_fields<3>(codes, book, first, vectors, product.levels);
    default: return unpack_fields<2>(codes, book, first, vectors, product.levels);
  }
}

template <int Q, int T, class Use>
inline void multiply_block(const CodedProduct& product, int64_t query, int64_t output,
                           const Use& use) {
  F32x16 dots[Q][T];
  pair_dot<Q, T>(product.levels, product.steps / 2, product.x + query * product.steps,
                 product.steps, dots);
  for (int q = 0; q < Q; ++q)
    for (int t = 0; t < T; ++t) use(query + q, output + t * kLanes, dots[q][t]);
}

template <int T, class Use>
inline void multiply_queries(const CodedProduct& product, int64_t output, const Use& use) {
  int64_t query = 0;
  for (; query + kPairQueries <= product.queries; query += kPairQueries)
    multiply_block<kPairQueries, T>(product, query, output, use);
  for (; query + 4 <= product.queries; query += 4)
    multiply_block<4, T>(product, query, output, use);
  for (; query + 2 <= product.queries; query += 2)
    multiply_block<2, T>(product, query, output, use);
  for (; query < product.queries; ++query) multiply_block<1, T>(product, query, output, use);
}

// Calls use(query, output, dots) for all queries and every 16 outputs. Levels of two blocks of
// outputs are unpacked once for all queries and stay in the first-level cache.
template <class Use>
inline void multiply(const CodedProduct& product, const Use& use) {
  const int64_t vectors = product.steps / 2;  // of a block
  int64_t output = 0;
  for (; output + 2 * kLanes <= product.outputs; output += 2 * kLanes) {
    unpack(product, output / kLanes * vectors, 2 * vectors);
    multiply_queries<2>(product, output, use);
  }
  if (output < product.outputs) {
    unpack(product, output / kLanes * vectors, vectors);
    multiply_queries<1>(product, output, use);
  }
}

void attention_codes(const CodedPage& page) {
  const CodedScratch& scratch = page.scratch;
  const CodedProduct scores{.matrix = page.keys,
                            .next = page.values.codes,
                            .outputs = kMaxPageSlice,
                            .steps = page.head_dim,
                            .x = page.q,
                            .queries = page.queries,
                            .levels = scratch.levels};
  multiply(scores, [&](int64_t query, int64_t position, F32x16 dots) {
    const F32x16 scale = mul(load_bf16(page.keys.scales + position), set1(page.q_scales[query]));
    store(scratch.scores + query * kMaxPageSlice + position, mul(dots, scale));
  });
  for (int64_t query = 0; query < page.queries; ++query) {
    float* weights = scratch.scores + query * kMaxPageSlice;
    scratch.rescale[query] =
        soften(weights, 0, kMaxPageSlice, page.maximum[query], page.denominator[query]);
    for (int64_t i = 0; i < kMaxPageSlice; i += kLanes)
      store(weights + i, mul(load(weights + i), load_bf16(page.values.scales + i)));
    scratch.weight_scales[query] = round_to_int16<kWeightSteps>(
        weights, kMaxPageSlice, scratch.weights + query * kMaxPageSlice);
  }
  const CodedProduct sums{.matrix = page.values,
                          .next = page.next_keys,
                          .outputs = page.head_dim,
                          .steps = kMaxPageSlice,
                          .x = scratch.weights,
                          .queries = page.queries,
                          .levels = scratch.levels};
  multiply(sums, [&](int64_t query, int64_t dim, F32x16 dots) {
    float* out = page.out + query * page.head_dim + dim;
    const F32x16 before = mul(load(out), set1(scratch.rescale[query]));
    store(out, fma(dots, set1(scratch.weight_scales[query]), before));
  });
}

}  // namespace
}  // namespace slip
