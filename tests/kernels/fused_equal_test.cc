// Operations that do the work of several: of every backend, to the bit what those do one after the
// other. Those are compared with the reference in tests of their own.
#include "kernels/cpu/cpu_ops.h"
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

class FusedEqual : public OpsTest {};
class MixerEqual : public OpsTest {};

constexpr int64_t kRowCounts[] = {1, 2, 3, 5, 8, 16, 17};
constexpr float kEps = 1e-6f;

// Weights of these formats on inputs of `in`.
std::vector<TestWeight> make_weights(Ops& ops, std::span<const WeightFormat> formats, int64_t in,
                                     Rng& rng) {
  std::vector<TestWeight> weights;
  int64_t out = 17;
  for (const WeightFormat format : formats) {
    const int group =
        format == WeightFormat::int4_group || format == WeightFormat::fp8_block ? 128 : 0;
    weights.push_back(make_weight(ops, {format, out, in, group}, Fill::random, rng));
    out += 16;
  }
  return weights;
}

// What comes of them, in two ways.
struct Results {
  const std::vector<TestWeight>& weights;
  std::vector<Guarded> fused, composed;

  Results(const std::vector<TestWeight>& of, int64_t rows, Rng& rng) : weights(of) {
    for (const TestWeight& weight : weights) {
      fused.push_back(random_tensor({rows, weight.plain.info.out}, rng));
      composed.push_back(copy_of(fused.back()));
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
  const std::vector<WeightFormat> layers[] = {{bf16, f32},
                                              {bf16, bf16},  // a router
                                              {int4_group, bf16},
                                              {int4_group, int8_row, fp8_block, f16}};
  for (const int64_t in : {128, 384, 1280, 2048, 3072, 4096, 33, 5376, 9216}) {
    const Guarded scale = random_tensor({in}, rng);
    for (const std::vector<WeightFormat>& formats : layers) {
      if (in % 128 != 0 && formats[0] == int4_group) continue;
      const std::vector<TestWeight> weights = make_weights(ops(), formats, in, rng);
      for (const int64_t rows : some_of(kRowCounts)) {
        const Guarded x = random_tensor({rows, in}, rng);
        for (const bool scaled : {true, false}) {
          Results results(weights, rows, rng);
          Guarded normed({rows, in}), right({rows, in});
          const auto args = [&](const View& out, const std::vector<LinearOutput>& outputs) {
            return NormLinearsArgs{
                .norm = {.x = x, .scale = scaled ? scale.view() : View{}, .out = out, .eps = kEps},
                .outputs = outputs};
          };
          ops().norm_linears(args(normed, results.outputs(results.fused)));
          ops().Ops::norm_linears(args(right, results.outputs(results.composed)));
          const std::string what = cat("norm of ", in, ", ", rows, " rows");
          expect_same_bits(normed.values(), right.values(), what);
          results.expect_equal(what);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// A branch that joins the residual, alone or with one beside it; some outputs of the sum.
struct Branch {
  Guarded branch, beside, residual, sum, scale, other, third;
  std::vector<Guarded> normed;
  bool two, apart;  // a branch beside it; the sum does not replace the residual

  Branch(int64_t rows, int64_t dim, size_t outputs, bool with_beside, bool sum_apart, Rng& rng)
      : branch(random_tensor({rows, dim}, rng)),
        beside(random_tensor({rows, dim}, rng)),
        residual(random_tensor({rows, dim}, rng)),
        sum(random_tensor({rows, dim}, rng)),
        scale(random_tensor({dim}, rng)),
        other(random_tensor({dim}, rng)),
        third(random_tensor({dim}, rng)),
        two(with_beside),
        apart(sum_apart) {
    for (size_t i = 0; i < outputs; ++i) normed.emplace_back(Shape{rows, dim});
  }
  Branch(const Branch& from)
      : branch(copy_of(from.branch)),
        beside(copy_of(from.beside)),
        residual(copy_of(from.residual)),
        sum(copy_of(from.sum)),
        scale(copy_of(from.scale)),
        other(copy_of(from.other)),
        third(copy_of(from.third)),
        two(from.two),
        apart(from.apart) {
    for (const Guarded& each : from.normed) normed.push_back(copy_of(each));
  }
  Branch& operator=(const Branch&) = delete;

  // `factor`: of the first output.
  std::vector<NormOutput> outputs(float factor) const {
    std::vector<NormOutput> list;
    const View scales[] = {other, scale, third};
    for (size_t i = 0; i < normed.size(); ++i)
      list.push_back({scales[i], normed[i], i == 0 ? factor : 0.3f});
    return list;
  }
  AddBranchArgs args(std::span<const NormOutput> list) const {
    return {.branch = branch,
            .scale = scale,
            .residual = residual,
            .eps = kEps,
            .factor = two ? 0.7f : 1.0f,
            .sum = apart ? sum.view() : View{},
            .beside = two ? beside.view() : View{},
            .branch_scale = two ? other.view() : View{},
            .beside_scale = two ? third.view() : View{},
            .outputs = list};
  }
  void expect_same(const Branch& right, const std::string& what) const {
    expect_same_bits(residual.values(), right.residual.values(), what);
    expect_same_bits(sum.values(), right.sum.values(), what);
    for (size_t i = 0; i < normed.size(); ++i)
      expect_same_bits(normed[i].values(), right.normed[i].values(), what);
  }
};

TEST_P(FusedEqual, BranchesOfAResidual) {
  Rng rng(4);
  // As in NormThenLinears; the last is more than a block keeps.
  for (const int64_t dim : {128, 384, 1536, 2816, 33, 130, 4096, 5376, 8192, 9216}) {
    for (const int64_t rows : some_of(kRowCounts)) {
      for (const size_t outputs : {0, 1, 3}) {
        for (const bool two : {false, true}) {
          const Branch fused(rows, dim, outputs, two, rows % 2 == 0, rng), composed(fused);
          const std::vector<NormOutput> list = fused.outputs(0.9f);
          const std::vector<NormOutput> right = composed.outputs(0.9f);
          ops().add_branch(fused.args(list));
          ops().Ops::add_branch(composed.args(right));
          fused.expect_same(composed, cat("branch of ", dim, ", ", rows, " rows"));
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(FusedEqual, BranchThenLinears) {
  Rng rng(5);
  const std::vector<WeightFormat> layers[] = {
      {bf16}, {int4_group}, {int4_group, int4_group}, {int4_group, bf16}, {int8_row, int4_group}};
  // A branch alone and with one beside it; all that read the sum, or only these weights.
  struct Form {
    bool two;
    size_t outputs;
    float factor;
  };
  constexpr Form kForms[] = {
      {false, 1, 1.0f}, {false, 3, 0.02f}, {true, 1, 1.0f}, {true, 3, 0.02f}};
  // Four slabs of a warp at most; then more than floats take, and more than int4 does.
  for (const int64_t dim : {384, 1536, 2816, 33, 5376, 8192, 9216}) {
    for (const std::vector<WeightFormat>& formats : layers) {
      if (dim % 128 != 0 && formats[0] != bf16) continue;
      const std::vector<TestWeight> weights = make_weights(ops(), formats, dim, rng);
      for (const int64_t rows : some_of(kRowCounts)) {
        for (const Form& form : kForms) {
          if (rows > 1 && form.two != (form.outputs == 3)) continue;  // several take one way
          const bool apart = rows == 1 || rng.integer(0, 3) > 0;
          const Branch fused(rows, dim, form.outputs, form.two, apart, rng), composed(fused);
          const std::vector<NormOutput> list = fused.outputs(form.factor);
          const std::vector<NormOutput> right = composed.outputs(form.factor);
          Results results(weights, rows, rng);
          ops().add_branch_linears(
              {.branch = fused.args(list), .outputs = results.outputs(results.fused)});
          ops().Ops::add_branch_linears(
              {.branch = composed.args(right), .outputs = results.outputs(results.composed)});
          const std::string what = cat("branch of ", dim, ", ", rows, " rows");
          fused.expect_same(composed, what);
          results.expect_equal(what);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(FusedEqual, GateHeadsThenLinear) {
  Rng rng(3);
  constexpr int64_t kHeads = 4;
  for (const int64_t dim : {32, 128, 256}) {
    for (const WeightFormat format : {int4_group, bf16}) {
      const std::vector<TestWeight> weights = make_weights(ops(), {&format, 1}, kHeads * dim, rng);
      for (const int64_t rows : some_of(kRowCounts)) {
        Results results(weights, rows, rng);
        const Guarded q_and_gate = random_tensor({rows, kHeads, 2 * dim}, rng);
        const Guarded x = random_tensor({rows, kHeads, dim}, rng);
        const Guarded same = copy_of(x);
        const auto args = [&](const Guarded& from, const Guarded& out) {
          return GateHeadsLinearArgs{
              .x = from, .q_and_gate = q_and_gate, .weight = weights[0].packed, .out = out};
        };
        ops().gate_heads_linear(args(x, results.fused[0]));
        ops().Ops::gate_heads_linear(args(same, results.composed[0]));
        results.expect_equal(cat("heads of ", dim, ", ", rows, " rows"));
        if (HasFailure()) return;
      }
    }
  }
}

// A delta-net layer behind its projections.
struct Mixer {
  int64_t key_heads, value_heads, dim;
  WeightFormat format;

  static constexpr int64_t kSlots = 5, kRecordRows = 10, kHidden = 72, kWidth = 4;
  int64_t channels() const { return (2 * key_heads + value_heads) * dim; }
};

// What it leaves behind.
struct MixerMemory {
  Guarded tail, state, keys, deltas, decays, out;

  MixerMemory(const Mixer& m, int64_t rows, Rng& rng)
      : tail(random_tensor({m.kSlots, m.kWidth - 1 + m.kRecordRows, m.channels()}, rng)),
        state(random_tensor({m.kSlots, m.value_heads, m.dim, m.dim}, rng)),
        keys(random_tensor({2 * m.kSlots, m.kRecordRows, m.key_heads, m.dim}, rng, 0.1)),
        deltas(random_tensor({2 * m.kSlots, m.kRecordRows, m.value_heads, m.dim}, rng)),
        decays(random_tensor({2 * m.kSlots, m.kRecordRows, m.value_heads}, rng, 0.5)),
        out(random_tensor({rows, m.kHidden}, rng)) {}
  MixerMemory(const MixerMemory& other)
      : tail(copy_of(other.tail)),
        state(copy_of(other.state)),
        keys(copy_of(other.keys)),
        deltas(copy_of(other.deltas)),
        decays(copy_of(other.decays)),
        out(copy_of(other.out)) {}

  void expect_equal(const MixerMemory& right, const std::string& what) const {
    expect_same_bits(out.values(), right.out.values(), what);
    expect_same_bits(tail.values(), right.tail.values(), what + ", tail");
    expect_same_bits(state.values(), right.state.values(), what + ", state");
    expect_same_bits(keys.values(), right.keys.values(), what + ", recorded keys");
    expect_same_bits(deltas.values(), right.deltas.values(), what + ", recorded deltas");
    expect_same_bits(decays.values(), right.decays.values(), what + ", recorded decays");
  }
};

void gated_delta_net_equals_its_parts(Ops& ops, const std::vector<Mixer>& mixers) {
  Rng rng(2);
  struct Part {
    int64_t rows;
    bool record;
    int32_t replay;
  };
  const std::vector<std::vector<Part>> steps = {
      {{1, false, 0}},
      {{1, false, 2}},
      {{2, false, 1}},
      {{3, true, 0}},
      {{4, true, 3}},
      {{8, false, 10}},
      {{0, false, 4}, {1, false, 0}},
      {{1, false, 0}, {3, true, 2}, {1, false, 0}, {2, true, 0}},
      {{8, true, 9}, {8, false, 0}},
      {{9, false, 0}},  // more rows than go through at once
      {{17, false, 3}},
  };
  for (const Mixer& m : mixers) {
    const Guarded conv = random_tensor({m.kWidth, m.channels()}, rng);
    const Guarded rate = random_tensor({m.value_heads}, rng, 0.1);
    const Guarded dt_bias = random_tensor({m.value_heads}, rng);
    const Guarded scale = random_tensor({m.dim}, rng);
    const int64_t width = m.value_heads * m.dim;
    const TestWeight weight = make_weight(
        ops, {m.format, m.kHidden, width, m.format == int4_group ? 128 : 0}, Fill::random, rng);
    for (const std::vector<Part>& step : steps) {
      std::vector<Span> spans;
      int64_t rows = 0;
      for (const Part& part : step) {
        spans.push_back({.first_row = rows,
                         .rows = part.rows,
                         .start = 5,
                         .state_slot = int32_t((spans.size() * 3 + 1) % size_t(m.kSlots)),
                         .record = part.record,
                         .replay = part.replay,
                         .record_side = int32_t(spans.size() % 2)});
        rows += part.rows;
      }
      const Guarded qkv = random_tensor({rows, m.channels()}, rng);
      const Guarded a = random_tensor({rows, m.value_heads}, rng);
      const Guarded b = random_tensor({rows, m.value_heads}, rng);
      const Guarded z = random_tensor({rows, m.value_heads, m.dim}, rng);
      const Guarded convolved({rows, m.channels()}), mixed({rows, m.value_heads, m.dim});
      const MixerMemory fused(m, rows, rng);
      const MixerMemory composed(fused);
      const auto args = [&](const MixerMemory& memory) {
        return GatedDeltaNetArgs{
            .qkv = qkv,
            .conv = conv,
            .tail = memory.tail,
            .convolved = convolved,
            .a = a,
            .b = b,
            .rate = rate,
            .dt_bias = dt_bias,
            .state = memory.state,
            .record = {.keys = memory.keys, .deltas = memory.deltas, .decays = memory.decays},
            .z = z,
            .norm_scale = scale,
            .mixed = mixed,
            .eps = kEps,
            .weight = weight.packed,
            .out = memory.out,
            .key_heads = m.key_heads,
            .spans = spans};
      };
      ops.gated_delta_net(args(fused));
      ops.Ops::gated_delta_net(args(composed));
      fused.expect_equal(
          composed, cat(m.value_heads, " heads of ", m.dim, ", ", spans.size(), " sequences, ",
                        rows, " rows, first of ", spans[0].rows, ", replays ", spans[0].replay));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST_P(MixerEqual, GatedDeltaNet) {
  gated_delta_net_equals_its_parts(
      ops(), {Mixer{1, 1, 128, int4_group}, Mixer{2, 8, 128, int4_group}, Mixer{3, 3, 128, bf16},
              Mixer{2, 4, 64, int4_group}});
}

// Heads whose channels and values are no whole vectors, or no whole groups of scales, too.
TEST(CpuFusedEqual, GatedDeltaNetOnAnyNumberOfThreads) {
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 2, 3, 4}) {
      SCOPED_TRACE(cat(name_of(isa), ", ", threads, " threads"));
      ThreadPool pool(threads);
      const std::unique_ptr<Ops> ops = make_cpu_ops(pool, isa);
      ops->reserve({.rows = 20, .widest_input = 1024});
      gated_delta_net_equals_its_parts(*ops, {{4, 8, 64, int4_group},
                                              {3, 3, 128, int8_row},
                                              {2, 2, 64, int4_group},
                                              {4, 4, 20, bf16}});
      if (HasFailure()) return;
    }
  }
}

// The others compose all of these, but for the delta-net layer on the CPU.
INSTANTIATE_TEST_SUITE_P(Backends, FusedEqual, ::testing::ValuesIn(fusing_backends()),
                         name_of_backend);
INSTANTIATE_TEST_SUITE_P(Backends, MixerEqual, ::testing::ValuesIn(fusing_backends()),
                         name_of_backend);
INSTANTIATE_TEST_SUITE_P(Cpu, MixerEqual, ::testing::ValuesIn(cpu_backends()), name_of_backend);

}  // namespace
}  // namespace slip
