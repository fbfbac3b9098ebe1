// Linear layers of rows that are normed: of every backend, to the bit what the two do one after the
// other. Those are compared with the reference in tests of their own.
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

class FusedEqual : public OpsTest {};

constexpr int64_t kRowCounts[] = {1, 2, 3, 5, 8, 16, 17};
constexpr float kEps = 1e-6f;

struct Layer {
  std::vector<TestWeight> weights;
  std::vector<Guarded> fused, composed;

  // Weights of these formats on inputs of `in`, and room for their results.
  Layer(Ops& ops, std::initializer_list<WeightFormat> formats, int64_t in, int64_t rows, Rng& rng) {
    int64_t out = 17;
    for (const WeightFormat format : formats) {
      const int group =
          format == WeightFormat::int4_group || format == WeightFormat::fp8_block ? 128 : 0;
      weights.push_back(make_weight(ops, {format, out, in, group}, Fill::random, rng));
      fused.push_back(random_tensor({rows, out}, rng));
      composed.push_back(copy_of(fused.back()));
      out += 16;
    }
  }

  std::vector<LinearOutput> outputs(const std::vector<Guarded>& to) const {
    std::vector<LinearOutput> all;
    for (size_t i = 0; i < weights.size(); ++i) all.push_back({weights[i].packed, to[i].view()});
    return all;
  }
  void expect_equal(const std::string& what) const {
    for (size_t i = 0; i < weights.size(); ++i)
      expect_same_bits(fused[i].values(), composed[i].values(),
                       cat(what, ", ", name_of(weights[i].plain.info.format)));
  }
};

using enum WeightFormat;

TEST_P(FusedEqual, NormThenLinears) {
  Rng rng(1);
  // Whole slabs, parts of one, odd sizes, more than a block can keep, and the widest of heads.
  for (const int64_t in : {128, 384, 1280, 2048, 33, 5376, 9216}) {
    const Guarded scale = random_tensor({in}, rng);
    for (const int64_t rows : kRowCounts) {
      const Guarded x = random_tensor({rows, in}, rng);
      for (const bool scaled : {true, false}) {
        for (const auto formats : {std::initializer_list<WeightFormat>{bf16, f32},
                                   {int4_group, bf16},
                                   {int4_group, int8_row, fp8_block, f16}}) {
          if (in % 128 != 0 && formats.size() == 4) continue;
          if (in % 128 != 0 && *formats.begin() == int4_group) continue;
          Layer layer(ops(), formats, in, rows, rng);
          Guarded normed({rows, in}), right({rows, in});
          const auto args = [&](const View& out, const std::vector<LinearOutput>& outputs) {
            return NormLinearsArgs{
                .norm = {.x = x, .scale = scaled ? scale.view() : View{}, .out = out, .eps = kEps},
                .outputs = outputs};
          };
          ops().norm_linears(args(normed, layer.outputs(layer.fused)));
          ops().Ops::norm_linears(args(right, layer.outputs(layer.composed)));
          const std::string what = cat("norm of ", in, ", ", rows, " rows");
          expect_same_bits(normed.values(), right.values(), what);
          layer.expect_equal(what);
          if (HasFailure()) return;
        }
      }
    }
  }
}

SLIP_TEST_BACKENDS(FusedEqual);

}  // namespace
}  // namespace slip
