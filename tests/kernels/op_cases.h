// What the tests of ops share: tensors between poisoned guards, weights with known values, bounds
// computed from the number formats, comparisons that report the worst error over the allowed one.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/ref/ref_ops.h"
#include "quant/number_formats.h"
#include "tensor/buffer.h"
#include "tests/kernels/backends.h"

namespace slip {

template <int kStoredMantissaBits>
constexpr double unit_roundoff = 1.0 / double(uint64_t{2} << kStoredMantissaBits);

static_assert(unit_roundoff<7> == 0.00390625);  // bf16
static_assert(unit_roundoff<10> == 0x1p-11);    // f16
static_assert(unit_roundoff<23> == 0x1p-24);    // f32

inline constexpr double kRoundoff = unit_roundoff<23>;

// Results below the smallest normal float may be flushed to zero.
inline constexpr double kTiny = 0x1p-125;

// Deterministic on every machine, unlike the distributions of <random>.
class Rng {
 public:
  explicit Rng(uint64_t seed) : bits_(seed) {}
  int64_t integer(int64_t low, int64_t high) {  // both included
    return low + int64_t(bits_() % uint64_t(high - low + 1));
  }
  int64_t nonzero(int64_t limit) {
    const int64_t value = integer(1, limit);
    return bits_() & 1 ? value : -value;
  }
  double uniform(double low, double high) {
    return low + (high - low) * double(bits_() >> 11) * 0x1p-53;
  }
  // The sum of twelve that are uniform in [-0.5, 0.5].
  double normal() {
    uint64_t sum = 0;
    for (int draw = 0; draw < 3; ++draw)
      for (uint64_t parts = bits_(); parts != 0; parts >>= 16) sum += parts & 0xffff;
    return double(sum) / 0xffff - 6;
  }

 private:
  std::mt19937_64 bits_;
};

// A tensor of NaN (integers: -1) between guards of NaN: reading beside it poisons results, writing
// beside it fails the test when the tensor goes out of scope.
class Guarded {
 public:
  explicit Guarded(const Shape& shape, DType dtype = DType::f32);
  Guarded(Guarded&&) = default;
  Guarded& operator=(Guarded&&) = delete;
  ~Guarded();

  const View& view() const { return view_; }
  operator View() const { return view_; }
  float* f32() const { return view_.f32(); }
  int32_t* i32() const { return view_.i32(); }
  std::span<float> values() const { return {view_.f32(), size_t(view_.count())}; }

 private:
  static constexpr size_t kGuard = 256;
  Buffer buffer_;
  View view_;
};

Guarded copy_of(const View& view);
Guarded random_tensor(const Shape& shape, Rng& rng, double scale = 1);
Guarded constant_tensor(const Shape& shape, float value);

// Small non-zero integers, so that every product and sum is exact.
Guarded integer_tensor(const Shape& shape, Rng& rng, int64_t limit = 9);

// A weight in the plain layout, as the backend keeps it, and as numbers.
struct TestWeight {
  Buffer plain_storage;
  Weight plain;
  Buffer packed_storage;
  Weight packed;
  std::vector<double> dense;  // [out, in]

  double at(int64_t out, int64_t in) const { return dense[size_t(out * plain.info.in + in)]; }
};

enum class Fill {
  random,
  integers,  // small, not zero, scales are powers of two
  extremes,  // every code at the end of its range: finds products that saturate
};
TestWeight make_weight(Ops& ops, const WeightInfo& info, Fill fill, Rng& rng);

// Every format with the awkward input widths it can have; `out` is left to the test.
std::vector<WeightInfo> weight_cases();
std::string describe(const WeightInfo& info);
bool uses_integer_activations(const WeightInfo& info, const OpTolerance& tolerance);
bool uses_f16_activations(const WeightInfo& info, const OpTolerance& tolerance);

// Integers that a backend rounds to themselves before they meet such a weight.
Guarded exact_inputs(const WeightInfo& info, int64_t rows, const OpTolerance& tolerance, Rng& rng);

// Bound on the error of each output of one row of a linear layer. `x_error`, if not empty, bounds
// the error that x has already.
std::vector<double> linear_bound(const TestWeight& weight, std::span<const float> x,
                                 const OpTolerance& tolerance,
                                 std::span<const double> x_error = {});

// A plain float version with the same number formats: what a fast kernel's precision is measured
// against.
std::vector<float> plain_linear(const TestWeight& weight, std::span<const float> x,
                                const OpTolerance& tolerance);

void expect_same_bits(std::span<const float> got, std::span<const float> expected,
                      const std::string& what);
void expect_within(std::span<const float> got, std::span<const float> expected,
                   std::span<const double> allowed, const std::string& what);

// The same bound for all values: relative to each, plus something absolute.
void expect_close(std::span<const float> got, std::span<const float> expected, double relative,
                  double absolute, const std::string& what);

inline constexpr int64_t kRowCounts[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 65};
inline constexpr int64_t kMostRows = 65;

// One instance per backend, skipped where the backend cannot run. ops() is under test; ref() judges
// it.
class OpsTest : public ::testing::TestWithParam<NamedOps> {
 protected:
  void SetUp() override;
  Ops& ops() { return *ops_; }
  Ops& ref() { return *ref_; }
  const OpTolerance& tolerance() const { return GetParam().tolerance; }
  double exp_error() const { return tolerance().exp_ulps * kRoundoff; }

  // All sizes. Slow backends take every third, beginning anywhere, so that a test has them all, but
  // not with each other.
  template <size_t kCount>
  std::vector<int64_t> some_of(const int64_t (&sizes)[kCount]) {
    const size_t step = GetParam().slow ? 3 : 1;
    std::vector<int64_t> some;
    for (size_t i = size_t(choice_.integer(0, int64_t(step) - 1)); i < kCount; i += step)
      some.push_back(sizes[i]);
    return some;
  }

 private:
  Rng choice_{0};
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Ops> ref_;
};

// A view of rows [first, first + rows).
inline std::span<float> rows_of(const Guarded& tensor, int64_t first, int64_t rows) {
  const int64_t width = tensor.view().count() / tensor.view().shape[0];
  return tensor.values().subspan(size_t(first * width), size_t(rows * width));
}

inline std::string name_of_backend(const ::testing::TestParamInfo<NamedOps>& instance) {
  return instance.param.name;
}

#define SLIP_TEST_BACKENDS(suite)                                                       \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, ::testing::ValuesIn(backends_under_test()), \
                           name_of_backend)

}  // namespace slip
