#include "quant/gptq.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iomanip>
#include <optional>

#include "quant/number_formats.h"
#include "quant/stored_values.h"

namespace slip {
namespace {

static_assert(std::endian::native == std::endian::little,
              "a word's nibbles are a plain row's bytes on little-endian machines only");

constexpr int64_t kCodesPerWord = 8;

std::string hex(uint32_t word) {
  std::ostringstream out;
  out << "0x" << std::hex << std::setw(8) << std::setfill('0') << word;
  return std::move(out).str();
}

using Words = uint32_t __attribute__((vector_size(16)));

// Strides in bytes.
void transpose_4x4(const std::byte* from, size_t from_stride, std::byte* to, size_t to_stride) {
  Words row[4];
  for (size_t r = 0; r < 4; ++r) std::memcpy(&row[r], from + r * from_stride, sizeof(Words));
  const Words low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  const Words high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  const Words low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  const Words high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  const Words column[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                           __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                           __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                           __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (size_t c = 0; c < 4; ++c) std::memcpy(to + c * to_stride, &column[c], sizeof(Words));
}

// to[c, r] = from[r, c] for r in [r0, r1), c in [c0, c1); value by value.
template <class T>
struct Transpose {
  const std::byte* from;
  int64_t rows, columns;
  std::byte* to;

  void region(int64_t r0, int64_t r1, int64_t c0, int64_t c1) const {
    for (int64_t c = c0; c < c1; ++c) {
      for (int64_t r = r0; r < r1; ++r) {
        const T value = load<T>(from, r * columns + c);
        std::memcpy(to + size_t(c * rows + r) * sizeof(T), &value, sizeof(T));
      }
    }
  }
};

// to[c, r] = from[r, c] in tiles of 16 rows by 64 columns. A tile reads runs of 256 bytes and
// writes 16 words at once, a whole cache line of a result row, so that strides which are powers of
// two, the usual case, do not evict lines before they are used up. 3.7 GB/s of weights on one core
// of an EPYC, which is 11 GB/s of memory traffic: read, read for ownership, write.
void transpose_words(const Transpose<uint32_t>& all) {
  constexpr int64_t kTileRows = 16;
  constexpr int64_t kTileColumns = 64;
  constexpr size_t kWord = sizeof(uint32_t);
  alignas(64) std::byte turned[kTileColumns][kTileRows * kWord];
  const int64_t whole_rows = all.rows / kTileRows * kTileRows;
  const int64_t whole_columns = all.columns / kTileColumns * kTileColumns;
  for (int64_t c0 = 0; c0 < whole_columns; c0 += kTileColumns) {
    for (int64_t r0 = 0; r0 < whole_rows; r0 += kTileRows) {
      for (int64_t r = 0; r < kTileRows; r += 4)
        for (int64_t c = 0; c < kTileColumns; c += 4)
          transpose_4x4(all.from + size_t((r0 + r) * all.columns + c0 + c) * kWord,
                        size_t(all.columns) * kWord, &turned[c][size_t(r) * kWord],
                        kTileRows * kWord);
      for (int64_t c = 0; c < kTileColumns; ++c)
        std::memcpy(all.to + size_t((c0 + c) * all.rows + r0) * kWord, turned[c],
                    sizeof(turned[c]));
    }
  }
  all.region(whole_rows, all.rows, 0, whole_columns);
  all.region(0, all.rows, whole_columns, all.columns);
}

// The index of the first infinity or NaN.
std::optional<int64_t> first_not_finite(std::span<const std::byte> f16) {
  const int64_t count = int64_t(f16.size() / sizeof(uint16_t));
  for (int64_t i = 0; i < count; ++i)
    if ((load<uint16_t>(f16.data(), i) & 0x7c00) == 0x7c00) return i;
  return std::nullopt;
}

Status check_bytes(const char* tensor, std::span<const std::byte> bytes, int64_t rows,
                   int64_t columns, size_t bytes_per_value) {
  const size_t expected = size_t(rows) * size_t(columns) * bytes_per_value;
  if (bytes.size() == expected) return {};
  return error(tensor, " has ", bytes.size(), " bytes, expected ", expected, " for [", rows, ", ",
               columns, "]");
}

Status check_sizes(const GptqTensors& tensors, const WeightInfo& info) {
  if (info.group != 32 && info.group != 64 && info.group != 128)
    return error("int4 groups of ", info.group, " are not supported; 32, 64 and 128 are");
  if (info.in <= 0 || info.in % info.group != 0)
    return error("int4 weight with ", info.in, " inputs, not a multiple of its group ", info.group);
  if (info.out <= 0 || info.out % kCodesPerWord != 0)
    return error("int4 weight with ", info.out, " outputs; packed zero points need a multiple of ",
                 kCodesPerWord);
  const int64_t groups = info.in / info.group;
  SLIP_TRY_STATUS(check_bytes("qweight", tensors.qweight, info.in / kCodesPerWord, info.out, 4));
  SLIP_TRY_STATUS(check_bytes("scales", tensors.scales, groups, info.out, 2));
  SLIP_TRY_STATUS(check_bytes("qzeros", tensors.qzeros, groups, info.out / kCodesPerWord, 4));
  return {};
}

}  // namespace

Result<GptqZeros> symmetric_zeros(std::span<const std::byte> qzeros) {
  constexpr uint32_t kV1 = 0x77777777;
  constexpr uint32_t kV2 = 0x88888888;
  const int64_t words = int64_t(qzeros.size() / sizeof(uint32_t));
  if (words == 0 || qzeros.size() % sizeof(uint32_t) != 0)
    return error("qzeros has ", qzeros.size(), " bytes, expected whole 32-bit words");
  const uint32_t first = load<uint32_t>(qzeros.data(), 0);
  for (int64_t i = 0; i < words; ++i) {
    const uint32_t word = load<uint32_t>(qzeros.data(), i);
    if (word != first || (word != kV1 && word != kV2))
      return error("asymmetric zero points are not supported: word ", i, " of qzeros is ",
                   hex(word), ", expected ", first == kV1 || first == kV2 ? hex(first) : hex(kV1),
                   first == kV1 || first == kV2 ? "" : " or " + hex(kV2),
                   "; quantize the model with symmetric INT4 (sym: true)");
  }
  return first == kV1 ? GptqZeros::v1 : GptqZeros::v2;
}

Status check_trivial_g_idx(std::span<const std::byte> g_idx, int group) {
  const int64_t in = int64_t(g_idx.size() / sizeof(int32_t));
  if (group <= 0 || g_idx.size() % sizeof(int32_t) != 0)
    return error("g_idx has ", g_idx.size(), " bytes in groups of ", group);
  for (int64_t i = 0; i < in; ++i) {
    const int32_t found = load<int32_t>(g_idx.data(), i);
    if (found != i / group)
      return error("g_idx puts input ", i, " into group ", found, ", expected ", i / group,
                   "; activation order (desc_act) is not supported");
  }
  return {};
}

Status unpack_gptq(const GptqTensors& tensors, const Weight& into) {
  const WeightInfo& info = into.info;
  check(info.format == WeightFormat::int4_group && !into.packed && !into.empty(),
        "unpack_gptq fills a plain int4 weight");
  SLIP_TRY_STATUS(check_sizes(tensors, info));
  if (const auto zeros = symmetric_zeros(tensors.qzeros); !zeros.ok()) return zeros.failure();
  if (const auto bad = first_not_finite(tensors.scales))
    return error("scale of output row ", *bad % info.out, ", group ", *bad / info.out, " is ",
                 f16_to_float(load<uint16_t>(tensors.scales.data(), *bad)),
                 ", expected a finite number; the file is damaged or its quantization overflowed");
  // Little-endian words hold the codes in the order of a plain row's bytes.
  transpose_words({tensors.qweight.data(), info.in / kCodesPerWord, info.out, into.values.data});
  const int64_t groups = info.in / info.group;
  const Transpose<uint16_t> scales{tensors.scales.data(), groups, info.out, into.scales.data};
  scales.region(0, groups, 0, info.out);
  return {};
}

PackedGptq pack_gptq(const Weight& plain) {
  const WeightInfo& info = plain.info;
  check(info.format == WeightFormat::int4_group && !plain.packed && info.out % kCodesPerWord == 0,
        "pack_gptq takes a plain int4 weight with outputs in eights, not ", info.out);
  const int64_t groups = info.in / info.group;
  PackedGptq packed;
  packed.qweight.resize(size_t(info.in / 2 * info.out));
  packed.scales.resize(size_t(groups * info.out) * sizeof(uint16_t));
  packed.qzeros.assign(size_t(groups * info.out / 2), std::byte{0x77});
  transpose_words({plain.values.data, info.out, info.in / kCodesPerWord, packed.qweight.data()});
  const Transpose<uint16_t> scales{plain.scales.data, info.out, groups, packed.scales.data()};
  scales.region(0, info.out, 0, groups);
  return packed;
}

}  // namespace slip
