#include "tests/kernels/backends.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/ref/ref_ops.h"
#include "kernels/ref/ref_ops_impl.h"

namespace slip {
namespace {

// The reference with activations rounded to int8 where a fast backend may: shows that the
// tolerance for it admits what it describes, and that the exact tests are exact under it.
class RefInt8Ops : public RefOps {
 public:
  void linear(const LinearArgs& args) override {
    const WeightFormat format = args.weight.info.format;
    if (format != WeightFormat::int8_row && format != WeightFormat::int4_group)
      return RefOps::linear(args);
    std::vector<float> rounded(args.x.f32(), args.x.f32() + args.x.count());
    const size_t in = size_t(args.x.shape[1]);
    for (size_t row = 0; row < rounded.size(); row += in)
      for (size_t i = 0; i < in; i += 128)
        round_group({rounded.data() + row + i, std::min<size_t>(128, in - i)});
    LinearArgs with_rounded = args;
    with_rounded.x.data = reinterpret_cast<std::byte*>(rounded.data());
    RefOps::linear(with_rounded);
  }

 private:
  static void round_group(std::span<float> group) {
    float largest = 0;
    for (const float value : group) largest = std::max(largest, std::fabs(value));
    const float scale = largest / 127.0f;
    for (float& value : group) value = scale == 0 ? 0 : std::nearbyint(value / scale) * scale;
  }
};

std::unique_ptr<Ops> make_test_cpu_ops(Isa isa) {
  static ThreadPool pool(2);
  return make_cpu_ops(pool, isa);
}

}  // namespace

// The reference is held against itself too: that tests the tests (integers are exact, bounds are
// not negative, rows are invariant).
std::vector<NamedOps> backends_under_test() {
  std::vector<NamedOps> backends;
  backends.push_back({.name = "ref", .make = [] { return make_ref_ops(); }, .tolerance = {}});
  backends.push_back({.name = "ref_int8",
                      .make = [] { return std::make_unique<RefInt8Ops>(); },
                      .tolerance = {.int8_activations = true}});
  for (const Isa isa : available_isas()) {
    const char* name = isa == Isa::avx512 ? "cpu_avx512"
                       : isa == Isa::avx2 ? "cpu_avx2"
                                          : "cpu_portable";
    backends.push_back({.name = name,
                        .make = [isa] { return make_test_cpu_ops(isa); },
                        .tolerance = {.int8_activations = true}});
  }
  return backends;
}

}  // namespace slip
