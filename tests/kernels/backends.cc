#include "tests/kernels/backends.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/ref/ref_ops.h"
#include "kernels/ref/ref_ops_impl.h"
#include "quant/number_formats.h"
#include "tests/gpu/hosted_ops.h"
#ifdef SLIP_CUDA
#include "kernels/cuda_ops.h"
#endif

namespace slip {
namespace {

// The reference with activations rounded where a fast backend may: shows that the tolerance for it
// admits what it describes, and that the exact tests are exact under it.
class RefRoundedOps : public RefOps {
 public:
  void linear(const LinearArgs& args) override {
    if (!rounds(args.weight.info)) return RefOps::linear(args);
    std::vector<float> rounded(args.x.f32(), args.x.f32() + args.x.count());
    const size_t in = size_t(args.x.shape[1]);
    const int of_weight = args.weight.info.group;
    const size_t group = of_weight > 0 ? size_t(of_weight) : 128;
    for (size_t row = 0; row < rounded.size(); row += in)
      for (size_t i = 0; i < in; i += group)
        round_group({rounded.data() + row + i, std::min(group, in - i)});
    LinearArgs with_rounded = args;
    with_rounded.x.data = reinterpret_cast<std::byte*>(rounded.data());
    RefOps::linear(with_rounded);
  }

 protected:
  virtual bool rounds(const WeightInfo& info) const = 0;
  virtual void round_group(std::span<float> group) const = 0;

  static float largest_of(std::span<const float> group) {
    float largest = 0;
    for (const float value : group) largest = std::max(largest, std::fabs(value));
    return largest;
  }
};

template <int kSteps>
class RefIntegerOps : public RefRoundedOps {
  bool rounds(const WeightInfo& info) const override {
    return info.format == WeightFormat::int8_row || info.format == WeightFormat::int4_group;
  }
  void round_group(std::span<float> group) const override {
    const float scale = largest_of(group) / float(kSteps);
    for (float& value : group) value = scale == 0 ? 0 : std::nearbyint(value / scale) * scale;
  }
};

class RefF16Ops : public RefRoundedOps {
  bool rounds(const WeightInfo& info) const override {
    switch (info.format) {
      case WeightFormat::f32: return false;
      case WeightFormat::bf16:
      case WeightFormat::f16: return is_large(info);
      default: return true;
    }
  }
  void round_group(std::span<float> group) const override {
    const float largest = largest_of(group);
    if (largest == 0) return;
    const int exponent = std::ilogb(largest);
    for (float& value : group)
      value = std::ldexp(f16_to_float(float_to_f16(std::ldexp(value, -exponent))), exponent);
  }
};

// What CUDA does, and what stands in for it where there is none.
constexpr OpTolerance kCudaTolerance{
    .f16_activations = true, .fused_is_exact = false, .invariant_rows = 16, .exact_delta_rows = 8};

Result<std::unique_ptr<Ops>> hosted(Result<std::unique_ptr<Ops>> far) {
  if (!far.ok()) return far;
  return std::unique_ptr<Ops>(std::make_unique<HostedOps>(std::move(far).value()));
}

ThreadPool& test_pool() {
  static ThreadPool pool(2);
  return pool;
}

// One for each instruction set that this machine has.
std::vector<NamedOps> cpu_backends_with(int activation_bytes, const std::string& suffix) {
  std::vector<NamedOps> backends;
  for (const Isa isa : available_isas()) {
    backends.push_back(
        {.name = cat("cpu_", id_of(isa), suffix),
         .make = [=] { return make_cpu_ops(test_pool(), isa, activation_bytes); },
         .tolerance = {.activation_steps = activation_bytes == 1 ? kByteSteps : kTwoByteSteps}});
  }
  return backends;
}

template <class RoundedOps>
std::unique_ptr<Ops> make_rounded() {
  return std::make_unique<RoundedOps>();
}

std::vector<NamedOps> cuda_backends() {
  std::vector<NamedOps> backends;
#ifdef SLIP_CUDA
  backends.push_back({.name = "cuda",
                      .make = [] { return hosted(make_cuda_ops(0)); },
                      .tolerance = kCudaTolerance});
#endif
#ifdef SLIP_CUDA_ON_CPU
  // The second device has less shared memory, for which some kernels go other ways.
  backends.push_back({.name = "cuda_small",
                      .make = [] { return hosted(make_cuda_ops(1)); },
                      .tolerance = kCudaTolerance});
  for (NamedOps& backend : backends) backend.slow = true;
#endif
  return backends;
}

void append(std::vector<NamedOps>& to, std::vector<NamedOps> more) {
  std::ranges::move(more, std::back_inserter(to));
}

}  // namespace

// The reference is held against itself too: that tests the tests (integers are exact, bounds are
// not negative, rows are invariant).
std::vector<NamedOps> backends_under_test() {
  std::vector<NamedOps> backends = cpu_backends();
  backends.push_back({.name = "ref", .make = [] { return make_ref_ops(); }, .tolerance = {}});
  backends.push_back({.name = "ref_int16",
                      .make = [] { return make_rounded<RefIntegerOps<kTwoByteSteps>>(); },
                      .tolerance = {.activation_steps = kTwoByteSteps}});
  append(backends, fusing_backends());
  return backends;
}

std::vector<NamedOps> fast_backends() {
  std::vector<NamedOps> backends = cpu_backends();
  append(backends, cuda_backends());
  return backends;
}

std::vector<NamedOps> cpu_backends() { return cpu_backends_with(2, ""); }

std::vector<NamedOps> fusing_backends() {
  std::vector<NamedOps> backends = cuda_backends();
  backends.push_back({.name = "hosted_ref_f16",
                      .make = [] { return hosted(make_rounded<RefF16Ops>()); },
                      .tolerance = kCudaTolerance});
  return backends;
}

std::vector<NamedOps> byte_backends() {
  std::vector<NamedOps> backends = cpu_backends_with(1, "_bytes");
  backends.push_back({.name = "ref_int8",
                      .make = [] { return make_rounded<RefIntegerOps<kByteSteps>>(); },
                      .tolerance = {.activation_steps = kByteSteps}});
  return backends;
}

}  // namespace slip
