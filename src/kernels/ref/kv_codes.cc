#include "kernels/ref/kv_codes.h"

#include <algorithm>
#include <vector>

#include "kernels/kv_tail.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

// Number of the first bit of the code of value i of a vector.
int64_t first_bit(const CodedSide& kv, int64_t vector, int64_t i) {
  return (vector * kv.head_dim() + i) * bits_of(kv.codec);
}

uint8_t read_code(const CodedSide& kv, int64_t vector, int64_t i) {
  const uint8_t* bytes = kv.codes.as<uint8_t>(DType::u8);
  unsigned code = 0;
  for (int64_t b = 0; b < bits_of(kv.codec); ++b) {
    const int64_t bit = first_bit(kv, vector, i) + b;
    code |= unsigned(bytes[bit / 8] >> (bit % 8) & 1) << b;
  }
  return uint8_t(code);
}

void write_code(const CodedSide& kv, int64_t vector, int64_t i, uint8_t code) {
  uint8_t* bytes = kv.codes.as<uint8_t>(DType::u8);
  for (int64_t b = 0; b < bits_of(kv.codec); ++b) {
    const int64_t bit = first_bit(kv, vector, i) + b;
    const unsigned others = bytes[bit / 8] & ~(1u << (bit % 8));
    bytes[bit / 8] = uint8_t(others | unsigned(code >> b & 1) << (bit % 8));
  }
}

std::span<const float> row_at(const CodedSide& kv, const Span& span, int64_t position,
                              int64_t head) {
  return {kv.row(span, position, head), size_t(kv.head_dim())};
}

std::span<uint16_t> tail_at(const CodedSide& kv, const Span& span, int64_t place, int64_t head) {
  return {kv.tail_at(span, place, head), size_t(kv.head_dim())};
}

// A position that is not read as codes: a row of this step, or before it the tail at `place`.
std::vector<float> uncoded(const CodedSide& kv, const Span& span, int64_t position, int64_t place,
                           int64_t head) {
  std::vector<float> values(size_t(kv.head_dim()), 0.0f);
  if (position >= span.start)
    std::ranges::copy(row_at(kv, span, position, head), values.begin());
  else
    std::ranges::transform(tail_at(kv, span, place, head), values.begin(), bf16_to_float);
  return values;
}

}  // namespace

void write_codes(const CodedSide& kv, int64_t vector, std::span<const float> rotated) {
  std::vector<uint8_t> codes(rotated.size());
  const float scale =
      kv.codec == KvCodec::int8
          ? turbo_encode_int8(rotated, {reinterpret_cast<int8_t*>(codes.data()), codes.size()})
          : turbo_encode(rotated, bits_of(kv.codec), codes);
  kv.scales.as<uint16_t>(DType::bf16)[vector] = float_to_bf16(scale);
  for (size_t i = 0; i < codes.size(); ++i) write_code(kv, vector, int64_t(i), codes[i]);
}

void read_codes(const CodedSide& kv, int64_t vector, std::span<double> values) {
  const double scale = double(bf16_to_float(kv.scales.as<uint16_t>(DType::bf16)[vector]));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t code = read_code(kv, vector, int64_t(i));
    const int8_t level =
        kv.codec == KvCodec::int8 ? int8_t(code) : turbo_book(bits_of(kv.codec)).levels[code];
    values[i] = scale * double(level);
  }
}

void store_rows(const CodedSide& kv, const Span& span) {
  const KvTail tail(span, kv.page_len());
  for (int64_t h = 0; h < kv.kv_heads(); ++h) {
    // The beginning of the first page is still in its place; after that it may be overwritten.
    for (int64_t p = tail.first_page(); p < tail.last_page(); ++p)
      write_codes(kv, kv.vector_at(span, p, h), uncoded(kv, span, p, tail.place(p), h));
    for (int64_t p = tail.first_page(); p < span.start && tail.moves_beginning(); ++p)
      std::ranges::copy(tail_at(kv, span, tail.place(p), h),
                        tail_at(kv, span, tail.beginning_place(p), h).begin());
    for (int64_t p = tail.first_written(); p < span.start + span.rows; ++p)
      std::ranges::transform(row_at(kv, span, p, h), tail_at(kv, span, tail.place(p), h).begin(),
                             float_to_bf16);
  }
}

void read_position(const CodedSide& kv, const Span& span, const CodedRead& read,
                   std::span<double> values) {
  const KvTail tail(span, kv.page_len());
  if (kv.rows.empty()) {  // stored by an earlier step, and read as the next position will read it
    const int64_t vector = kv.vector_at(span, read.position, read.kv_head);
    if (read.position < tail.page_start(read.reader + 1)) return read_codes(kv, vector, values);
    std::ranges::transform(tail_at(kv, span, tail.place(read.position), read.kv_head),
                           values.begin(), bf16_to_float);
    return;
  }
  if (read.position < tail.page_start(read.reader)) {
    read_codes(kv, kv.vector_at(span, read.position, read.kv_head), values);
  } else {
    const int64_t place = tail.beginning_place(read.position);
    std::ranges::copy(uncoded(kv, span, read.position, place, read.kv_head), values.begin());
  }
}

}  // namespace slip
