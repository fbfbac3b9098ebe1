// What CUDA offers to kernels by name. Included by cuda_runtime.h.
#pragma once

// --- Arithmetic. Rounding as named; nothing is fused that does not say so (-ffp-contract=off).

template <class A, class B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) constexpr auto min(A a, B b) {
  using Both = std::common_type_t<A, B>;
  return Both(a) < Both(b) ? Both(a) : Both(b);
}
template <class A, class B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) constexpr auto max(A a, B b) {
  using Both = std::common_type_t<A, B>;
  return Both(a) < Both(b) ? Both(b) : Both(a);
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float rsqrtf(float x) { return float(1.0 / std::sqrt(double(x))); }
inline int __float2int_rn(float x) {
  if (std::isnan(x)) return 0;
  const double rounded = std::nearbyint(double(x));
  return int(std::clamp(rounded, double(INT32_MIN), double(INT32_MAX)));
}
inline float __int2float_rn(int x) { return float(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(unsigned(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(unsigned(x)) + 1; }

inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned which = selector >> (4 * i);
    unsigned byte = unsigned(bytes >> (8 * (which & 7))) & 0xff;
    if (which & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// --- Memory

template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T __ldcg(const T* p) {
  return *p;
}
inline void __threadfence() {}

// Threads take turns where they wait for each other, and nowhere else.
template <class T>
T atomicAdd(T* p, std::type_identity_t<T> x) {
  const T before = *p;
  *p = T(before + x);
  return before;
}

// --- Threads that meet

inline void __syncthreads() { simt::sync_block(false); }
inline int __syncthreads_count(int value) { return simt::sync_block(value != 0); }

namespace simt {

// Every mask that kernels name is the whole warp.
inline void check_mask(unsigned mask) {
  if (mask != ~0u) __builtin_trap();
}

template <class T>
Payload payload_of(T value, int parameter = 0) {
  static_assert(sizeof(T) <= 8);
  Payload payload;
  std::memcpy(payload.words, &value, sizeof(T));
  payload.words[7] = uint32_t(parameter);
  return payload;
}
template <class T>
T value_of(const Payload& payload) {
  T value;
  std::memcpy(&value, payload.words, sizeof(T));
  return value;
}

// What a lane takes from another, and its own where that does not exist. Which one: kSource(lane,
// parameter).
template <auto kSource>
void take_from(const Payload* in, Payload* out, uint32_t present) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const int from = kSource(lane, int(in[lane].words[7]));
    const bool exists = from >= 0 && from < kLanes && (present >> from & 1);
    out[lane] = in[exists ? from : lane];
  }
}

template <class T, auto kCombine>
void reduce(const Payload* in, Payload* out, uint32_t present) {
  T total{};
  bool first = true;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!(present >> lane & 1)) continue;
    const T value = value_of<T>(in[lane]);
    total = first ? value : T(kCombine(total, value));
    first = false;
  }
  std::fill_n(out, kLanes, payload_of(total));
}

inline void nothing(const Payload*, Payload*, uint32_t) {}

inline void ballot(const Payload* in, Payload* out, uint32_t present) {
  uint32_t votes = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    if ((present >> lane & 1) && in[lane].words[0] != 0) votes |= 1u << lane;
  for (int lane = 0; lane < kLanes; ++lane) out[lane].words[0] = votes;
}

inline void match(const Payload* in, Payload* out, uint32_t present) {
  for (int lane = 0; lane < kLanes; ++lane) {
    out[lane].words[0] = 0;
    for (int other = 0; other < kLanes; ++other)
      if ((present >> other & 1) && in[other].words[0] == in[lane].words[0] &&
          in[other].words[1] == in[lane].words[1])
        out[lane].words[0] |= 1u << other;
  }
}

}  // namespace simt

inline void __syncwarp(unsigned mask = ~0u) {
  simt::check_mask(mask);
  simt::with_warp({}, simt::nothing);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane) {
  simt::check_mask(mask);
  constexpr auto kSource = [](int, int parameter) { return parameter % simt::kLanes; };
  return simt::value_of<T>(
      simt::with_warp(simt::payload_of(value, lane), simt::take_from<kSource>));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
  simt::check_mask(mask);
  constexpr auto kSource = [](int lane, int parameter) { return lane ^ parameter; };
  return simt::value_of<T>(
      simt::with_warp(simt::payload_of(value, bits), simt::take_from<kSource>));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int distance) {
  simt::check_mask(mask);
  constexpr auto kSource = [](int lane, int parameter) { return lane - parameter; };
  return simt::value_of<T>(
      simt::with_warp(simt::payload_of(value, distance), simt::take_from<kSource>));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int distance) {
  simt::check_mask(mask);
  constexpr auto kSource = [](int lane, int parameter) { return lane + parameter; };
  return simt::value_of<T>(
      simt::with_warp(simt::payload_of(value, distance), simt::take_from<kSource>));
}
template <class T>
T __reduce_add_sync(unsigned mask, T value) {
  simt::check_mask(mask);
  constexpr auto kAdd = [](T a, T b) {
    return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  };
  return simt::value_of<T>(simt::with_warp(simt::payload_of(value), simt::reduce<T, kAdd>));
}
template <class T>
T __reduce_max_sync(unsigned mask, T value) {
  simt::check_mask(mask);
  constexpr auto kMax = [](T a, T b) { return a < b ? b : a; };
  return simt::value_of<T>(simt::with_warp(simt::payload_of(value), simt::reduce<T, kMax>));
}
inline unsigned __ballot_sync(unsigned mask, int value) {
  simt::check_mask(mask);
  return simt::value_of<unsigned>(
      simt::with_warp(simt::payload_of(unsigned(value != 0)), simt::ballot));
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  simt::check_mask(mask);
  return simt::value_of<unsigned>(simt::with_warp(simt::payload_of(value), simt::match));
}
