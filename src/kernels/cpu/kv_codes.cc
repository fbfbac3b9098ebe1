#include "kernels/cpu/kv_codes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/kv_tail.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

constexpr int64_t kVector = 2 * kLanes;  // levels that are unpacked at once
constexpr int64_t kSmallestDim = kLanes;

// A row is kept in the tail as kv_tail.h says. The CPU also completes the beginning of the first
// page there, so that attention finds that page in one piece.
bool completes_beginning(const KvTail& tail, const Span& span, int64_t position, int64_t page_len) {
  return span.start > tail.first_page() && position < tail.first_page() + page_len;
}

uint16_t* page_words(const CodedSide& kv, const Span& span, int64_t position, int64_t head) {
  const int64_t page = span.pages[size_t(position / kv.page_len())];
  const int64_t bytes = kv.codes.shape[2];
  return reinterpret_cast<uint16_t*>(kv.codes.data + (page * kv.kv_heads() + head) * bytes);
}

// Codes [outputs, steps] or, for values, [steps, outputs], into the order of use.
void put_in_order(const CodedSide& kv, const uint8_t* codes, uint8_t* ordered) {
  const int64_t dims = kv.head_dim(), positions = kv.page_len();
  if (kv.side == KvSide::keys) {
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t pair = 0; pair < dims / 2; ++pair)
        std::memcpy(ordered + (p / kLanes * (dims / 2) + pair) * kVector + p % kLanes * 2,
                    codes + p * dims + 2 * pair, 2);
    return;
  }
  for (int64_t pair = 0; pair < positions / 2; ++pair) {
    const uint8_t* even = codes + 2 * pair * dims;
    for (int64_t d = 0; d < dims; ++d) {
      uint8_t* to = ordered + (d / kLanes * (positions / 2) + pair) * kVector + d % kLanes * 2;
      to[0] = even[d];
      to[1] = even[dims + d];
    }
  }
}

// One word of each value of `vectors` vectors: the kBits bits of vector j above those of j - 1.
template <int kBits>
void pack_words(const uint8_t* codes, int64_t vectors, int drop, uint16_t* words) {
  for (int64_t i = 0; i < kVector; ++i) {
    unsigned word = 0;
    for (int64_t j = 0; j < vectors; ++j)
      word |= (codes[j * kVector + i] >> drop & ((1u << kBits) - 1)) << (kBits * j);
    words[i] = uint16_t(word);
  }
}

template <int kBits>
void pack_page(const uint8_t* ordered, int64_t vectors, uint16_t* words) {
  constexpr int64_t kVectors = 16 / kBits;
  for (int64_t v = 0; v < vectors; v += kVectors, words += kVector)
    pack_words<kBits>(ordered + v * kVector, kVectors, 0, words);
}

template <>
void pack_page<3>(const uint8_t* ordered, int64_t vectors, uint16_t* words) {
  for (int64_t v = 0; v < vectors; v += 16, words += 3 * kVector) {
    const uint8_t* codes = ordered + v * kVector;
    pack_words<2>(codes, 8, 0, words);
    pack_words<2>(codes + 8 * kVector, 8, 0, words + kVector);
    pack_words<1>(codes, 16, 2, words + 2 * kVector);
  }
}

void pack_page(int bits, const uint8_t* ordered, int64_t vectors, uint16_t* words) {
  switch (bits) {
    case 8: return pack_page<8>(ordered, vectors, words);
    case 4: return pack_page<4>(ordered, vectors, words);
    case 3: return pack_page<3>(ordered, vectors, words);
    case 2: return pack_page<2>(ordered, vectors, words);
    default: unreachable("bits of a coded page");
  }
}

float encode(KvCodec codec, const float* rotated, int64_t dim, const Loops& loops, uint8_t* codes) {
  if (codec == KvCodec::int8)
    return loops.turbo_encode_int8(rotated, dim, reinterpret_cast<int8_t*>(codes));
  const TurboBook& book = turbo_book(bits_of(codec));
  return loops.turbo_encode(rotated, dim,
                            {.levels = book.levels.data(),
                             .threshold = book.thresholds.data(),
                             .thresholds = int(book.thresholds.size()),
                             .kappa = book.kappa},
                            codes);
}

// Sixteen levels each, as vectors look them up.
std::array<int8_t, 16> padded_levels(int bits) {
  std::array<int8_t, 16> levels{};
  std::ranges::copy(turbo_book(bits).levels, levels.begin());
  return levels;
}

const int8_t* lookup_levels(KvCodec codec) {
  static const std::array<std::array<int8_t, 16>, 3> books = {padded_levels(2), padded_levels(3),
                                                              padded_levels(4)};
  return codec == KvCodec::int8 ? nullptr : books[size_t(bits_of(codec) - 2)].data();
}

}  // namespace

void check_codable(const CodedSide& kv) {
  check(kv.page_len() == kMaxPageSlice, "coded pages have ", kMaxPageSlice, " positions, not ",
        kv.page_len());
  check(turbo_dim_ok(kv.head_dim()) && kv.head_dim() >= kSmallestDim, "no codes of ", kv.head_dim(),
        " dimensions");
}

void store_uncoded(const CodedSide& kv, const Span& span, int64_t position, int64_t head,
                   const Loops& loops, const float* row) {
  const KvTail tail(span, kv.page_len());
  const int64_t dim = kv.head_dim();
  float* out = kv.row(span, position, head);
  if (out != row) std::memcpy(out, row, size_t(dim) * sizeof(float));
  loops.turbo_rotate(turbo_signs(kv.side).data(), dim, out);
  uint16_t rounded[kMaxTurboDim];
  for (int64_t d = 0; d < dim; ++d) {
    rounded[d] = float_to_bf16(out[d]);
    out[d] = bf16_to_float(rounded[d]);
  }
  const auto keep_at = [&](int64_t place) {
    std::memcpy(kv.tail_at(span, place, head), rounded, size_t(dim) * sizeof(uint16_t));
  };
  if (position >= tail.first_written())
    keep_at(tail.place(position));
  else if (completes_beginning(tail, span, position, kv.page_len()))
    keep_at(tail.beginning_place(position));
}

void move_beginning(const CodedSide& kv, const Span& span) {
  const KvTail tail(span, kv.page_len());
  if (!tail.moves_beginning()) return;
  const int64_t positions = span.start - tail.first_page();
  for (int64_t head = 0; head < kv.kv_heads(); ++head)
    std::memcpy(kv.tail_at(span, tail.beginning_place(tail.first_page()), head),
                kv.tail_at(span, tail.place(tail.first_page()), head),
                size_t(positions * kv.head_dim()) * sizeof(uint16_t));
}

int64_t completed_pages(const CodedSide& kv, const Span& span) {
  const KvTail tail(span, kv.page_len());
  return (tail.last_page() - tail.first_page()) / kv.page_len();
}

int64_t encode_scratch_values(int64_t head_dim) {
  return 2 * kMaxPageSlice * head_dim / int64_t(sizeof(float));  // codes, twice
}

void encode_page(const CodedSide& kv, const Span& span, int64_t position, int64_t head,
                 const Loops& loops, std::span<float> scratch) {
  const KvTail tail(span, kv.page_len());
  const int64_t dim = kv.head_dim(), values = kv.page_len() * dim;
  check(int64_t(scratch.size()) >= encode_scratch_values(dim), "encode_page: scratch");
  auto* codes = reinterpret_cast<uint8_t*>(scratch.data());
  uint8_t* ordered = codes + values;
  uint16_t* scales = kv.scales.as<uint16_t>(DType::bf16) + kv.vector_at(span, position, head);
  for (int64_t i = 0; i < kv.page_len(); ++i) {
    const int64_t p = position + i;
    alignas(64) float from_tail[kMaxTurboDim];
    const float* rotated = from_tail;
    if (p >= span.start) {
      rotated = kv.row(span, p, head);
    } else {
      const uint16_t* kept = kv.tail_at(span, tail.beginning_place(p), head);
      for (int64_t d = 0; d < dim; ++d) from_tail[d] = bf16_to_float(kept[d]);
    }
    scales[i] = float_to_bf16(encode(kv.codec, rotated, dim, loops, codes + i * dim));
  }
  put_in_order(kv, codes, ordered);
  pack_page(bits_of(kv.codec), ordered, values / kVector, page_words(kv, span, position, head));
}

CodedMatrix coded_matrix(const CodedSide& kv, const Span& span, int64_t position, int64_t head) {
  return {.codes = page_words(kv, span, position, head),
          .bits = bits_of(kv.codec),
          .book = lookup_levels(kv.codec),
          .scales = kv.scales.as<uint16_t>(DType::bf16) +
                    kv.vector_at(span, position - position % kv.page_len(), head)};
}

UncodedRows uncoded_page(const CodedSide& kv, const Span& span, int64_t position, int64_t head) {
  const KvTail tail(span, kv.page_len());
  const int64_t page = tail.page_start(position);
  if (page >= span.start && !kv.rows.empty())
    return {kv.row(span, page, head), StoredKv::f32, kv.kv_heads() * kv.head_dim()};
  return {kv.tail_at(span, tail.beginning_place(page), head), StoredKv::bf16, kv.head_dim()};
}

}  // namespace slip
