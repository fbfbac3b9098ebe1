#include "kernels/cpu/packed_weight.h"

#include <algorithm>
#include <cstring>

#include "quant/number_formats.h"

namespace slip {
namespace {

size_t value_bytes(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32: return 4;
    case WeightFormat::bf16:
    case WeightFormat::f16: return 2;
    case WeightFormat::fp8_block:
    case WeightFormat::int8_row: return 1;
    case WeightFormat::int4_group: break;  // has no whole bytes
  }
  unreachable("WeightFormat");
}

size_t trailing_scale_bytes(const WeightInfo& info) {
  switch (info.format) {
    case WeightFormat::f32:
    case WeightFormat::bf16:
    case WeightFormat::f16:
    case WeightFormat::int4_group: return 0;
    case WeightFormat::fp8_block: return plain_scale_bytes(info);
    case WeightFormat::int8_row: return size_t(block_count(info.out) * kLanes) * sizeof(float);
  }
  unreachable("WeightFormat");
}

template <class Value>
void pack_lanes(const Weight& plain, std::byte* storage) {
  const int64_t out = plain.info.out, in = plain.info.in;
  const auto* from = reinterpret_cast<const Value*>(plain.values.data);
  auto* to = reinterpret_cast<Value*>(storage);
  for (int64_t block = 0; block < block_count(out); ++block, to += in * kLanes) {
    const int64_t lanes = std::min(kLanes, out - block * kLanes);
    if (lanes < kLanes) std::memset(to, 0, size_t(in * kLanes) * sizeof(Value));
    // Sixteen sequential reads, one sequential write.
    for (int64_t i = 0; i < in; ++i)
      for (int64_t lane = 0; lane < lanes; ++lane)
        to[i * kLanes + lane] = from[(block * kLanes + lane) * in + i];
  }
}

void pack_int8(const Weight& plain, std::byte* storage) {
  const int64_t out = plain.info.out, in = plain.info.in;
  const auto* from = reinterpret_cast<const int8_t*>(plain.values.data);
  auto* to = reinterpret_cast<int8_t*>(storage);
  const size_t block_bytes = cpu_block_bytes(plain.info);
  std::memset(to, 0, block_bytes * size_t(block_count(out)));
  for (int64_t row = 0; row < out; ++row) {
    int8_t* lane = to + size_t(row / kLanes) * block_bytes + row % kLanes * 4;
    for (int64_t i = 0; i < in; ++i) lane[i / 4 * 64 + i % 4] = from[row * in + i];
  }
}

void pack_int4(const Weight& plain, std::byte* storage) {
  const WeightInfo& info = plain.info;
  const int64_t groups = info.in / info.group, chunks = info.group / 8;
  const int64_t group_bytes = 2 * kLanes + chunks * 64;
  const auto* codes = reinterpret_cast<const uint8_t*>(plain.values.data);
  const auto* scales = plain.scales.as<uint16_t>(DType::f16);
  for (int64_t block = 0; block < block_count(info.out); ++block) {
    std::byte* to = storage + size_t(block) * cpu_block_bytes(info);
    const int64_t lanes = std::min(kLanes, info.out - block * kLanes);
    if (lanes < kLanes) std::memset(to, 0, cpu_block_bytes(info));
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t row = block * kLanes + lane;
      for (int64_t g = 0; g < groups; ++g) {
        std::byte* group = to + g * group_bytes;
        std::memcpy(group + lane * 2, &scales[row * groups + g], 2);
        const uint8_t* from = codes + (row * info.in + g * info.group) / 2;
        auto* chunk = reinterpret_cast<uint8_t*>(group) + 2 * kLanes + lane * 4;
        for (int64_t c = 0; c < chunks; ++c, from += 4, chunk += 64) {
          // Bytes hold inputs (0,1) (2,3) (4,5) (6,7); lanes want (0,4) (1,5) (2,6) (3,7).
          chunk[0] = uint8_t((from[0] & 15) | (from[2] << 4));
          chunk[1] = uint8_t((from[0] >> 4) | (from[2] & 0xf0));
          chunk[2] = uint8_t((from[1] & 15) | (from[3] << 4));
          chunk[3] = uint8_t((from[1] >> 4) | (from[3] & 0xf0));
        }
      }
    }
  }
}

void unpack_int4_row(const Weight& packed, int64_t row, float* out) {
  const WeightInfo& info = packed.info;
  const int64_t groups = info.in / info.group, chunks = info.group / 8, lane = row % kLanes;
  const std::byte* block = packed.values.data + size_t(row / kLanes) * cpu_block_bytes(info);
  for (int64_t g = 0; g < groups; ++g) {
    const std::byte* group = block + g * (2 * kLanes + chunks * 64);
    uint16_t scale_bits;
    std::memcpy(&scale_bits, group + lane * 2, 2);
    const float scale = f16_to_float(scale_bits);
    const auto* codes = reinterpret_cast<const uint8_t*>(group) + 2 * kLanes + lane * 4;
    for (int64_t i = 0; i < info.group; ++i) {
      const int byte = codes[i / 8 * 64 + i % 4];
      const int code = i % 8 < 4 ? byte & 15 : byte >> 4;
      out[g * info.group + i] = float(code - 8) * scale;
    }
  }
}

}  // namespace

size_t cpu_block_bytes(const WeightInfo& info) {
  switch (info.format) {
    case WeightFormat::f32:
    case WeightFormat::bf16:
    case WeightFormat::f16:
    case WeightFormat::fp8_block: return size_t(info.in * kLanes) * value_bytes(info.format);
    case WeightFormat::int8_row: return size_t((info.in + 3) / 4) * 64;
    case WeightFormat::int4_group:
      return size_t(info.in / info.group) * size_t(2 * kLanes + int64_t(info.group) / 8 * 64);
  }
  unreachable("WeightFormat");
}

size_t cpu_packed_bytes(const WeightInfo& info) {
  return size_t(block_count(info.out)) * cpu_block_bytes(info) + trailing_scale_bytes(info);
}

const float* cpu_trailing_scales(const Weight& packed) {
  const size_t blocks = size_t(block_count(packed.info.out)) * cpu_block_bytes(packed.info);
  return reinterpret_cast<const float*>(packed.values.data + blocks);
}

Weight cpu_pack(const Weight& plain, std::span<std::byte> storage) {
  const WeightInfo& info = plain.info;
  const size_t bytes = cpu_packed_bytes(info);
  check(!plain.packed && storage.size() >= bytes, "cpu_pack: ", storage.size(), " bytes for ",
        bytes);
  switch (info.format) {
    case WeightFormat::f32: pack_lanes<uint32_t>(plain, storage.data()); break;
    case WeightFormat::bf16:
    case WeightFormat::f16: pack_lanes<uint16_t>(plain, storage.data()); break;
    case WeightFormat::fp8_block: pack_lanes<uint8_t>(plain, storage.data()); break;
    case WeightFormat::int8_row: pack_int8(plain, storage.data()); break;
    case WeightFormat::int4_group: pack_int4(plain, storage.data()); break;
  }
  Weight packed{info, {storage.data(), DType::u8, {int64_t(bytes)}}, {}, true};
  if (const size_t scale_bytes = trailing_scale_bytes(info)) {
    std::byte* scales = storage.data() + bytes - scale_bytes;
    std::memset(scales, 0, scale_bytes);
    std::memcpy(scales, plain.scales.data, plain.scales.bytes());
  }
  return packed;
}

void cpu_unpack_row(const Weight& packed, int64_t row, float* out) {
  const WeightInfo& info = packed.info;
  const int64_t lane = row % kLanes;
  const std::byte* block = packed.values.data + size_t(row / kLanes) * cpu_block_bytes(info);
  const auto* u16 = reinterpret_cast<const uint16_t*>(block);
  const auto* u8 = reinterpret_cast<const uint8_t*>(block);
  for (int64_t i = 0; i < info.in; ++i) {
    const int64_t index = i * kLanes + lane;
    switch (info.format) {
      case WeightFormat::f32: out[i] = reinterpret_cast<const float*>(block)[index]; break;
      case WeightFormat::bf16: out[i] = bf16_to_float(u16[index]); break;
      case WeightFormat::f16: out[i] = f16_to_float(u16[index]); break;
      case WeightFormat::fp8_block: {
        const int64_t columns = (info.in + kFp8Block - 1) / kFp8Block;
        const int64_t scale = row / kFp8Block * columns + i / kFp8Block;
        out[i] = fp8_to_float(u8[index]) * cpu_trailing_scales(packed)[scale];
        break;
      }
      case WeightFormat::int8_row:
        out[i] =
            float(int8_t(u8[i / 4 * 64 + lane * 4 + i % 4])) * cpu_trailing_scales(packed)[row];
        break;
      case WeightFormat::int4_group: return unpack_int4_row(packed, row, out);
    }
  }
}

}  // namespace slip
