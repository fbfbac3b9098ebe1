// Values of slabs in steps of few rows: weights go from memory to registers, straight to the tensor
// cores; activations lie in shared memory, rounded once by the block.
#pragma once

#include <type_traits>

#include "kernels/cuda/expert_slabs.cuh"
#include "kernels/cuda/int4_products.cuh"

namespace slip {

inline constexpr int kRawSlabBytes = kSlabIn * int(sizeof(float));

// What weights a kernel is compiled for. Code for others would take registers from its loops, and
// memory: what a step runs through once per layer has left the instruction caches.
enum class SlabKind : uint8_t {
  int4,     // in groups of 128
  int4_64,  // in groups of 64
  fp8,
  f16,
  any,
};

constexpr bool is_int4(SlabKind kind) {
  return kind == SlabKind::int4 || kind == SlabKind::int4_64;
}

// Groups of a slab of int4.
constexpr int groups_of(SlabKind kind) { return kind == SlabKind::int4_64 ? 2 : 1; }

// Rows of activations in shared memory, in the form that their weights need; of any weights, in all
// forms that there are weights for.
template <SlabKind kKind>
struct RoundedInputs {
  using IntegerUnit = IntegerSlabOf<groups_of(kKind)>;
  std::byte* integers;         // [rows][slabs], each as round_to_integers() leaves a single row's
  IntegerUnit* integer_units;  // [rows][slabs]
  std::byte* halves;           // the same of round_slab()
  float* half_units;
  const float* rows;  // as they are
  int in, slabs;
  InputForms forms;

  static constexpr int kSlabBytes = slab_input_bytes(1);

  __device__ RoundedInputs(std::byte* memory, const float* from, int count, int dim,
                           const InputForms& which)
      : rows(from), in(dim), slabs(slabs_of(dim)), forms(which) {
    const int all = count * slabs;
    integers = memory;
    halves = integers + (has_integers() ? all * kSlabBytes : 0);
    integer_units = reinterpret_cast<IntegerUnit*>(halves + (has_halves() ? all * kSlabBytes : 0));
    half_units = reinterpret_cast<float*>(integer_units + (has_integers() ? all : 0));
  }

  __device__ int place(int row, int slab) const { return row * slabs + slab; }

  // Rounds slabs of `count` rows: the share of one warp of `warps`, kAtOnce of them at a time, of
  // which `raw` (shared memory, of the warp) has room for as many as they are, and kSideBySide of
  // which it works on. Calls asked() when the first ones are on their way.
  template <int kAtOnce, int kSideBySide, class Asked>
  __device__ __forceinline__ void round(int count, int warp, int warps, float4* raw,
                                        const Asked& asked) const {
    const int lane = int(threadIdx.x) % kWarp, items = count * slabs;
    const bool quads = kKind != SlabKind::any || in_quads(rows, in);
    int row_begin = 0, slab = warp;  // of the next one to be asked for
#pragma unroll 1
    for (int next = warp;; next += kAtOnce * warps) {
      float4 x[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (next + i * warps >= items) break;
#pragma unroll 1
        for (; slab >= slabs; slab -= slabs) row_begin += in;
        x[i] = lane_inputs(rows + row_begin, slab, in, quads);
        slab += warps;
      }
      if (next == warp) asked();
      if constexpr (kSideBySide == kAtOnce) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          if (next + i * warps >= items) return;
          round_item(next + i * warps, x[i]);
        }
      } else {
        // In a loop: code is waited for like any other memory.
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) raw[i * kWarp + lane] = x[i];
#pragma unroll 1
        for (int i = 0; i < kAtOnce; i += kSideBySide) {
          if (next + i * warps >= items) return;
#pragma unroll
          for (int j = i; j < i + kSideBySide; ++j)
            if (next + j * warps < items) round_item(next + j * warps, raw[j * kWarp + lane]);
        }
      }
    }
  }

  // A slab of the only row.
  __device__ __forceinline__ float4 ask_slab(int slab) const {
    return slab < slabs ? lane_inputs(rows, slab, in, kKind != SlabKind::any || in_quads(rows, in))
                        : make_float4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void round_item(int item, float4 x) const {
    const bool first = threadIdx.x % kWarp == 0;
    if (has_integers()) {
      const IntegerUnit unit =
          round_to_integers<groups_of(kKind)>(x, 0, 1, integers + item * kSlabBytes);
      if (first) integer_units[item] = unit;
    }
    if (has_halves()) {
      const float unit = round_slab(x, 0, 1, halves + item * kSlabBytes);
      if (first) half_units[item] = unit;
    }
  }

 private:
  __device__ bool has_integers() const {
    return kKind == SlabKind::any ? forms.integers : is_int4(kKind);
  }
  __device__ bool has_halves() const {
    return kKind == SlabKind::any ? forms.halves : kKind == SlabKind::fp8 || kKind == SlabKind::f16;
  }
};

// Bytes of them.
__host__ __device__ inline int rounded_inputs_bytes(int rows, int slabs, const InputForms& forms) {
  constexpr int kSlabBytes = slab_input_bytes(1);
  const int integers = (forms.integers ? kSlabBytes + int(sizeof(IntegerSlab)) : 0) +
                       (forms.int4_64 ? kSlabBytes + int(sizeof(IntegerSlabOf<2>)) : 0);
  const int each = integers + (forms.halves ? kSlabBytes + int(sizeof(float)) : 0);
  return (rows * slabs * each + 15) / 16 * 16;
}

// Rows that meet a weight. Those of one row cost no look-up.
struct OneUser {
  int at;
  __device__ static constexpr int count() { return 1; }
  __device__ int row(int) const { return at; }
};
template <class RowOf>
struct Users {
  int n;
  RowOf row_of;
  __device__ int count() const { return n; }
  __device__ int row(int i) const { return row_of(i); }
};
template <class RowOf>
Users(int, RowOf) -> Users<RowOf>;

template <int kGroups>
__device__ __forceinline__ void load_slab(const WeightTile& tile, int slab,
                                          Int4Words<kGroups>& words) {
  using Words = Int4Words<kGroups>;
  words.load(tile.values + slab * Words::kBytes + Words::lane_values(),
             tile.scales + slab * Words::kScaleBytes + Words::lane_scales());
}

// Slab `slab` of kTiles weights that meet the same rows. The value of output o of tile t for user i
// goes to values_of(i, t)[o].
template <int kTiles, int kGroups, class Inputs, class UserRows, class ValuesOf>
__device__ __forceinline__ void put_int4_values(const Int4Words<kGroups> (&tiles)[kTiles],
                                                const Inputs& inputs, int slab,
                                                const UserRows& users, const ValuesOf& values_of) {
  const int lane = int(threadIdx.x) % kWarp;
  constexpr bool kWholeBytes = kGroups == 1 && std::is_same_v<UserRows, OneUser>;  // registers
#pragma unroll 1
  for (int first = 0; first < users.count(); first += kIntegerRows) {
    const int column_user = min(first + lane / 8, users.count() - 1);
    const std::byte* from = inputs.integers +
                            inputs.place(users.row(column_user), slab) * inputs.kSlabBytes +
                            integer_offset(0, lane / 4 % 2, lane % 4, 1);
    const uint4 x[2] = {*reinterpret_cast<const uint4*>(from),
                        *reinterpret_cast<const uint4*>(from + integer_offset(1, 0, 0, 1))};
    const int user = min(first + lane % 4, users.count() - 1);
    const IntegerSlabOf<kGroups> unit =
        load_integers(inputs.integer_units + inputs.place(users.row(user), slab));
    float2 values[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      values[t] = make_float2(0, 0);
      add_int4_slab<kGroups, 2, kWholeBytes>(values[t], tiles[t], x, unit);
    }
    if (first + lane % 4 >= users.count()) continue;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      float* place = values_of(user, t) + lane / 4;
      place[0] = values[t].x;
      place[8] = values[t].y;
    }
  }
}

// A lane's part of a slab of any other kind.
template <class Slab>
struct HalfWords {
  static constexpr bool kOneScale = Slab::kFormat == DeviceFormat::fp8_block;
  static constexpr int kBytes = slab_bytes(Slab::kFormat);  // of the slab
  uint32_t words[Slab::kWords];
  const std::byte* scales;
  float scale;  // of fp8: asked for with the rest

  __device__ float2 scales_of(int group) const {
    if constexpr (kOneScale) return make_float2(scale * kFp8Factor, scale * kFp8Factor);
    return slab_scales<Slab>(scales, group);
  }
};

template <class Slab>
__device__ __forceinline__ HalfWords<Slab> load_halves(const WeightTile& tile, int slab) {
  const int lane = int(threadIdx.x) % kWarp;
  const std::byte* values = tile.values + slab * slab_bytes(Slab::kFormat) + lane * 16;
  HalfWords<Slab> result;
#pragma unroll
  for (int i = 0; i < Slab::kWords; i += 4) {
    const uint4 four = load_stream(values + i / 4 * kPieceBytes);
    result.words[i] = four.x;
    result.words[i + 1] = four.y;
    result.words[i + 2] = four.z;
    result.words[i + 3] = four.w;
  }
  result.scales = tile.scales + slab * tile.scale_stride * 4;
  if constexpr (HalfWords<Slab>::kOneScale)
    result.scale = __ldg(reinterpret_cast<const float*>(result.scales));
  return result;
}

// The same of one weight of such slabs.
template <class Slab, int kPairsPerGroup, class Inputs, class UserRows, class ValuesOf>
__device__ __forceinline__ void put_half_values(const HalfWords<Slab>& loaded, const Inputs& inputs,
                                                int slab, const UserRows& users,
                                                const ValuesOf& values_of) {
  const int lane = int(threadIdx.x) % kWarp;
#pragma unroll 1
  for (int first = 0; first < users.count(); first += kMmaRows) {
    const int column_user = min(first + lane / 4, users.count() - 1);
    const std::byte* from = inputs.halves +
                            inputs.place(users.row(column_user), slab) * inputs.kSlabBytes +
                            slab_offset(0, 0, lane % 4, 1);
    Sums sums;
    float totals[4] = {};
#pragma unroll
    for (int pair = 0; pair < kStepsPerSlab / 2; ++pair) {
      const uint4 x = *reinterpret_cast<const uint4*>(from + slab_offset(pair, 0, 0, 1));
      mma(sums, Slab::fragment(loaded.words, 2 * pair), x.x, x.y);
      mma(sums, Slab::fragment(loaded.words, 2 * pair + 1), x.z, x.w);
      if ((pair + 1) % kPairsPerGroup == 0)
        close_group(totals, sums, loaded.scales_of(pair / kPairsPerGroup));
    }
#pragma unroll
    for (int next = 0; next < 2; ++next) {
      const int user = first + lane % 4 * 2 + next;
      if (user >= users.count()) continue;
      const float unit = inputs.half_units[inputs.place(users.row(user), slab)];
      float* place = values_of(user, 0) + lane / 4;
      place[0] = totals[next] * unit;
      place[8] = totals[2 + next] * unit;
    }
  }
}

// The same of floats, without rounding; `outputs` of the 16 exist.
template <class UserRows, class ValuesOf>
__device__ __forceinline__ void put_float_values(const WeightTile& tile, int outputs,
                                                 const RoundedInputs<SlabKind::any>& inputs,
                                                 int slab, const UserRows& users,
                                                 const ValuesOf& values_of) {
  constexpr int kAtOnce = 4;
  const bool quads = in_quads(inputs.rows, inputs.in);
#pragma unroll 1
  for (int first = 0; first < outputs; first += kAtOnce) {
    float4 w[kAtOnce];
#pragma unroll
    for (int o = 0; o < kAtOnce; ++o)
      w[o] = lane_floats(tile, min(first + o, outputs - 1), slab, inputs.in);
    for (int i = 0; i < users.count(); ++i) {
      const float* row = inputs.rows + int64_t(users.row(i)) * inputs.in;
      const float4 x = lane_inputs(row, slab, inputs.in, quads);
#pragma unroll
      for (int o = 0; o < kAtOnce; ++o) {
        const float sum =
            warp_sum(fmaf(w[o].w, x.w, fmaf(w[o].z, x.z, fmaf(w[o].y, x.y, w[o].x * x.x))));
        if (threadIdx.x % kWarp == 0) values_of(i, 0)[first + o] = sum;
      }
    }
  }
}

// The same of any weight.
template <class UserRows, class ValuesOf>
__device__ __forceinline__ void put_values(const WeightTile& tile, int outputs,
                                           const RoundedInputs<SlabKind::any>& inputs, int slab,
                                           const UserRows& users, const ValuesOf& values_of) {
  if (tile.format == DeviceFormat::fp8_block)
    return put_half_values<Fp8Slab, 4>(load_halves<Fp8Slab>(tile, slab), inputs, slab, users,
                                       values_of);
  if (tile.format == DeviceFormat::int4_group && tile.group == kSlabIn) {
    Int4Words<1> words[1];
    load_slab(tile, slab, words[0]);
    return put_int4_values(words, inputs, slab, users, values_of);
  }
  if (tile.format == DeviceFormat::int8_row)
    return put_half_values<Int8Slab, 4>(load_halves<Int8Slab>(tile, slab), inputs, slab, users,
                                        values_of);
  if (tile.format == DeviceFormat::f16_slabs)
    return put_half_values<F16Slab, 4>(load_halves<F16Slab>(tile, slab), inputs, slab, users,
                                       values_of);
  if (tile.format != DeviceFormat::int4_group)
    return put_float_values(tile, outputs, inputs, slab, users, values_of);
  const HalfWords<Int4Slab> words = load_halves<Int4Slab>(tile, slab);
  if (tile.group == 64) return put_half_values<Int4Slab, 2>(words, inputs, slab, users, values_of);
  return put_half_values<Int4Slab, 1>(words, inputs, slab, users, values_of);
}

// A tile of a weight of a kind.
template <SlabKind kKind>
__device__ __forceinline__ WeightTile tile_of(const ExpertWeight& weight, int tile, int in) {
  if constexpr (is_int4(kKind)) return int4_tile(weight, tile, in, groups_of(kKind));
  return weight_tile(weight, tile, in);
}

// What a warp has of a slab of a kind (of any kind: nothing is walked), and its values.
template <SlabKind kKind>
struct WordsOf {
  using Type = Int4Words<groups_of(kKind)>;
};
template <>
struct WordsOf<SlabKind::fp8> {
  using Type = HalfWords<Fp8Slab>;
};
template <>
struct WordsOf<SlabKind::f16> {
  using Type = HalfWords<F16Slab>;
};
template <SlabKind kKind>
using SlabWords = typename WordsOf<kKind>::Type;

template <int kTiles, int kGroups, class Inputs, class UserRows, class ValuesOf>
__device__ __forceinline__ void put_slab(const Int4Words<kGroups> (&words)[kTiles],
                                         const Inputs& inputs, int slab, const UserRows& users,
                                         const ValuesOf& values_of) {
  put_int4_values(words, inputs, slab, users, values_of);
}
template <class Slab, class Inputs, class UserRows, class ValuesOf>
__device__ __forceinline__ void put_slab(const HalfWords<Slab> (&words)[1], const Inputs& inputs,
                                         int slab, const UserRows& users,
                                         const ValuesOf& values_of) {
  put_half_values<Slab, 4>(words[0], inputs, slab, users, values_of);
}

// values[0], values[kStride], ...: added in this order.
template <int kStride>
__device__ __forceinline__ float sum_of_slabs(const float* values, int slabs) {
  float sum = 0;
#pragma unroll 8
  for (int slab = 0; slab < slabs; ++slab) sum += values[slab * kStride];
  return sum;
}

}  // namespace slip
