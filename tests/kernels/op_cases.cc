#include "tests/kernels/op_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace slip {
namespace {

constexpr int64_t kActivationGroup = 128;

uint16_t random_int4_scale(Fill fill, Rng& rng) {
  constexpr float kExact[] = {1.0f, -1.0f, 0.5f, -2.0f};
  if (fill == Fill::extremes) return float_to_f16(1.0f);
  if (fill == Fill::integers) return float_to_f16(kExact[rng.integer(0, 3)]);
  if (rng.integer(0, 15) == 0) return uint16_t(rng.integer(1, 200));  // subnormal
  return float_to_f16(float(rng.normal() * 0.02));
}

float random_value(Fill fill, Rng& rng) {
  if (fill == Fill::random) return float(rng.normal() * 0.1);
  return float(rng.nonzero(7));
}

int random_code(Fill fill, int limit, Rng& rng) {
  if (fill == Fill::integers) return int(rng.nonzero(7));
  if (fill == Fill::extremes) return rng.integer(0, 1) ? limit : -limit;
  return int(rng.integer(-limit, limit));
}

void fill_values(const Weight& weight, Fill fill, Rng& rng) {
  const int64_t count = weight.values.count();
  auto* as_u8 = reinterpret_cast<uint8_t*>(weight.values.data);
  auto* as_u16 = reinterpret_cast<uint16_t*>(weight.values.data);
  for (int64_t i = 0; i < count; ++i) {
    switch (weight.info.format) {
      case WeightFormat::f32: weight.values.f32()[i] = random_value(fill, rng); break;
      case WeightFormat::bf16: as_u16[i] = float_to_bf16(random_value(fill, rng)); break;
      case WeightFormat::f16: as_u16[i] = float_to_f16(random_value(fill, rng)); break;
      case WeightFormat::fp8_block: as_u8[i] = float_to_fp8(10 * random_value(fill, rng)); break;
      case WeightFormat::int8_row: as_u8[i] = uint8_t(random_code(fill, 127, rng)); break;
      case WeightFormat::int4_group: {
        const auto code = [&] {
          if (fill == Fill::random) return int(rng.integer(0, 15));
          // Codes are kept unsigned: the longest sums are those of the largest code.
          if (fill == Fill::extremes) return rng.integer(0, 7) ? 15 : 0;
          return int(rng.nonzero(7)) + 8;
        };
        as_u8[i] = uint8_t(code() | code() << 4);
        break;
      }
    }
  }
  if (weight.info.format == WeightFormat::fp8_block && fill != Fill::random)
    for (int64_t i = 0; i < count; ++i) as_u8[i] = float_to_fp8(float(rng.nonzero(7)));
}

void fill_scales(const Weight& weight, Fill fill, Rng& rng) {
  if (weight.scales.empty()) return;
  for (int64_t i = 0; i < weight.scales.count(); ++i) {
    if (weight.info.format == WeightFormat::int4_group) {
      weight.scales.as<uint16_t>(DType::f16)[i] = random_int4_scale(fill, rng);
    } else if (fill == Fill::random) {
      weight.scales.f32()[i] = float(rng.uniform(0.0005, 0.005));
    } else {
      weight.scales.f32()[i] = fill == Fill::extremes ? 1.0f : float(1 << rng.integer(0, 2)) / 2;
    }
  }
}

// Largest magnitude of each input's activation group.
std::vector<double> group_maxima(std::span<const float> x) {
  std::vector<double> maxima(x.size());
  for (size_t begin = 0; begin < x.size(); begin += kActivationGroup) {
    const size_t end = std::min(x.size(), begin + size_t(kActivationGroup));
    double largest = 0;
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(double(x[i])));
    for (size_t i = begin; i < end; ++i) maxima[i] = largest;
  }
  return maxima;
}

}  // namespace

Guarded::Guarded(const Shape& shape, DType dtype)
    : buffer_(host_memory(), size_t(shape.count()) * bytes_per_value(dtype) + 2 * kGuard) {
  std::memset(buffer_.data(), 0xff, buffer_.size());
  view_ = buffer_.view(dtype, shape, kGuard);
}

Guarded::~Guarded() {
  if (buffer_.size() == 0) return;
  const auto bytes = buffer_.bytes();
  const auto untouched = [](std::span<const std::byte> guard) {
    return std::all_of(guard.begin(), guard.end(),
                       [](std::byte b) { return b == std::byte{0xff}; });
  };
  EXPECT_TRUE(untouched(bytes.first(kGuard))) << "written before a tensor of " << view_.shape;
  EXPECT_TRUE(untouched(bytes.last(kGuard))) << "written after a tensor of " << view_.shape;
}

Guarded copy_of(const View& view) {
  Guarded copy(view.shape, view.dtype);
  std::memcpy(copy.view().data, view.data, view.bytes());
  return copy;
}

Guarded random_tensor(const Shape& shape, Rng& rng, double scale) {
  Guarded tensor(shape);
  for (float& value : tensor.values()) value = float(rng.normal() * scale);
  return tensor;
}

Guarded constant_tensor(const Shape& shape, float value) {
  Guarded tensor(shape);
  for (float& v : tensor.values()) v = value;
  return tensor;
}

Guarded integer_tensor(const Shape& shape, Rng& rng, int64_t limit) {
  Guarded tensor(shape);
  for (float& value : tensor.values()) value = float(rng.nonzero(limit));
  return tensor;
}

namespace {

// Integers whose rounding to int8 or f16 is exact: each row's groups of 128 have the largest
// magnitude 127 * 2^n, with an n of their own.
Guarded int8_exact_tensor(int64_t rows, int64_t in, Rng& rng) {
  Guarded tensor({rows, in});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t begin = 0; begin < in; begin += kActivationGroup) {
      const int64_t end = std::min(in, begin + kActivationGroup);
      const float unit = float(1 << rng.integer(0, 2));
      float* row = tensor.f32() + r * in;
      for (int64_t i = begin; i < end; ++i) row[i] = unit * float(rng.nonzero(127));
      // A backend may scale by smaller groups, down to those of the weights.
      for (int64_t part = begin; part < end; part += 32)
        row[rng.integer(part, std::min(end, part + 32) - 1)] =
            rng.integer(0, 1) ? 127 * unit : -127 * unit;
    }
  }
  return tensor;
}

// The same for more steps than a byte has. Each of a row's groups has one value at the last step,
// and others of a size that needs the low byte and, with it, sometimes the high one. Sums have to
// stay below 2^24: wide rows have some eight groups, the others are zero.
Guarded steps_exact_tensor(const WeightInfo& info, int64_t rows, int steps, Rng& rng) {
  constexpr int64_t kOthers = 300, kMostGroups = 8;
  const int64_t group = info.group > 0 ? info.group : kActivationGroup;
  const int64_t groups = (info.in + group - 1) / group;
  Guarded tensor({rows, info.in});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t begin = 0; begin < info.in; begin += group) {
      const int64_t end = std::min(info.in, begin + group);
      const bool zero = groups > kMostGroups && rng.integer(1, groups) > kMostGroups;
      const float unit = zero ? 0 : float(1 << rng.integer(0, 1));
      float* row = tensor.f32() + r * info.in;
      for (int64_t i = begin; i < end; ++i) row[i] = unit * float(rng.nonzero(kOthers));
      row[rng.integer(begin, end - 1)] = unit * float(rng.integer(0, 1) ? steps : -steps);
    }
  }
  return tensor;
}

}  // namespace

TestWeight make_weight(Ops& ops, const WeightInfo& info, Fill fill, Rng& rng) {
  TestWeight weight;
  weight.plain_storage = Buffer(host_memory(), plain_bytes(info));
  weight.plain = plain_weight(info, weight.plain_storage.data());
  fill_values(weight.plain, fill, rng);
  fill_scales(weight.plain, fill, rng);
  weight.packed_storage = Buffer(host_memory(), ops.packed_bytes(info));
  weight.packed = ops.pack(weight.plain, weight.packed_storage.bytes());
  weight.dense.resize(size_t(info.out * info.in));
  for (int64_t o = 0; o < info.out; ++o)
    for (int64_t i = 0; i < info.in; ++i)
      weight.dense[size_t(o * info.in + i)] = weight_at(weight.plain, o, i);
  return weight;
}

std::vector<WeightInfo> weight_cases() {
  std::vector<WeightInfo> cases;
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16,
                                    WeightFormat::fp8_block, WeightFormat::int8_row})
    for (const int64_t in : {1, 3, 16, 17, 31, 64, 127, 128, 129, 384, 385})
      cases.push_back({format, 0, in, format == WeightFormat::fp8_block ? kFp8Block : 0});
  for (const int group : {32, 64, 128})
    for (const int64_t groups : {1, 2, 3, 5})
      cases.push_back({WeightFormat::int4_group, 0, groups * group, group});
  return cases;
}

std::string describe(const WeightInfo& info) {
  return cat(name_of(info.format), " [", info.out, ", ", info.in, "]",
             info.group ? cat(" in groups of ", info.group) : "");
}

bool uses_integer_activations(const WeightInfo& info, const OpTolerance& tolerance) {
  return tolerance.activation_steps > 0 &&
         (info.format == WeightFormat::int4_group || info.format == WeightFormat::int8_row);
}

bool uses_f16_activations(const WeightInfo& info, const OpTolerance& tolerance) {
  const bool floats = info.format == WeightFormat::bf16 || info.format == WeightFormat::f16;
  return tolerance.f16_activations && info.format != WeightFormat::f32 &&
         (!floats || is_large(info));
}

Guarded exact_inputs(const WeightInfo& info, int64_t rows, const OpTolerance& tolerance, Rng& rng) {
  const bool to_integers = uses_integer_activations(info, tolerance);
  if (to_integers && tolerance.activation_steps > kByteSteps)
    return steps_exact_tensor(info, rows, tolerance.activation_steps, rng);
  if (to_integers || uses_f16_activations(info, tolerance))
    return int8_exact_tensor(rows, info.in, rng);
  return integer_tensor({rows, info.in}, rng);
}

std::vector<double> linear_bound(const TestWeight& weight, std::span<const float> x,
                                 const OpTolerance& tolerance, std::span<const double> x_error) {
  const WeightInfo& info = weight.plain.info;
  // Rounding costs a share of each value and a share of its group's maximum.
  double of_value = 0, of_maximum = 0;
  if (uses_integer_activations(info, tolerance)) {
    // |x - scale * code| is half a step. The scale and the product are floats.
    of_value = 4 * kRoundoff;
    of_maximum = (1 + 0x1p-12) / (2 * tolerance.activation_steps);
  } else if (uses_f16_activations(info, tolerance)) {
    // The unit is a power of two at most 2 below the maximum; subnormal f16 are 2^-24 of it apart.
    of_value = unit_roundoff<10>;
    of_maximum = 0x1p-25;
    // In steps of few rows: integers, 2^13 of which are the power of two below the maximum.
    if (info.format == WeightFormat::int4_group && info.group == 128) of_maximum = 0x1p-14;
  }
  const std::vector<double> maxima = group_maxima(x);
  std::vector<double> input_error(x.size(), 0.0);
  for (size_t i = 0; i < x.size(); ++i)
    input_error[i] = of_value * std::fabs(double(x[i])) + of_maximum * maxima[i];
  if (!x_error.empty()) {
    // An error of x moves the maximum of its group too, and with it the step.
    double largest = 0;
    for (const double e : x_error) largest = std::max(largest, e);
    for (size_t i = 0; i < x.size(); ++i)
      input_error[i] += (1 + of_value) * x_error[i] + of_maximum * largest;
  }
  std::vector<double> bound(size_t(info.out), 0.0);
  for (int64_t o = 0; o < info.out; ++o) {
    double magnitude = 0;
    double from_inputs = 0;
    for (int64_t i = 0; i < info.in; ++i) {
      const double w = std::fabs(weight.at(o, i));
      magnitude += w * std::fabs(double(x[size_t(i)]));
      from_inputs += w * input_error[size_t(i)];
    }
    bound[size_t(o)] =
        from_inputs + (magnitude + from_inputs) * double(info.in + 8) * kRoundoff + kTiny;
  }
  return bound;
}

std::vector<float> plain_linear(const TestWeight& weight, std::span<const float> x,
                                const OpTolerance& tolerance) {
  const WeightInfo& info = weight.plain.info;
  std::vector<float> inputs(x.begin(), x.end());
  const std::vector<double> maxima = group_maxima(x);
  for (size_t i = 0; i < x.size(); ++i) {
    if (maxima[i] == 0) continue;
    if (uses_integer_activations(info, tolerance)) {
      const float scale = float(maxima[i]) / float(tolerance.activation_steps);
      inputs[i] = scale == 0 ? 0 : std::nearbyint(x[i] / scale) * scale;
    } else if (uses_f16_activations(info, tolerance)) {
      const int unit = std::ilogb(maxima[i]);
      inputs[i] = std::ldexp(f16_to_float(float_to_f16(std::ldexp(x[i], -unit))), unit);
    }
  }
  std::vector<float> out(size_t(info.out), 0.0f);
  for (int64_t o = 0; o < info.out; ++o)
    for (int64_t i = 0; i < info.in; ++i)
      out[size_t(o)] += float(weight.at(o, i)) * inputs[size_t(i)];
  return out;
}

void expect_same_bits(std::span<const float> got, std::span<const float> expected,
                      const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  size_t different = 0, first = 0;
  for (size_t i = got.size(); i-- > 0;) {
    if (std::memcmp(&got[i], &expected[i], sizeof(float)) == 0) continue;
    ++different;
    first = i;
  }
  EXPECT_EQ(different, 0u) << what << ": of " << got.size() << " values, the first at " << first
                           << " is " << got[first] << ", expected " << expected[first];
}

void expect_within(std::span<const float> got, std::span<const float> expected,
                   std::span<const double> allowed, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  ASSERT_EQ(got.size(), allowed.size()) << what;
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(double(got[i]) - double(expected[i]));
    double ratio = error == 0 ? 0 : error / allowed[i];
    if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
    if (ratio <= worst) continue;
    worst = ratio;
    at = i;
  }
  if (worst == 0) return;
  EXPECT_LE(worst, 1) << what << ": worst error over allowed error at value " << at << " of "
                      << got.size() << ": " << got[at] << ", expected " << expected[at] << " +- "
                      << allowed[at];
}

void expect_close(std::span<const float> got, std::span<const float> expected, double relative,
                  double absolute, const std::string& what) {
  std::vector<double> allowed(expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    allowed[i] = relative * std::fabs(double(expected[i])) + absolute;
  expect_within(got, expected, allowed, what);
}

void OpsTest::SetUp() {
  Result<std::unique_ptr<Ops>> made = GetParam().make();
  if (!made.ok()) GTEST_SKIP() << made.failure().message;
  ops_ = std::move(made).value();
  ref_ = make_ref_ops();
  ops_->reserve({.rows = 256,
                 .widest_input = 4096,
                 .top_k = 16,
                 .experts = 260,
                 .expert_width = 512,
                 .hidden = 1024,
                 .q_heads = 32,
                 .head_dim = 512,
                 .context = 8192});
}

}  // namespace slip
