// The class behind make_cpu_ops(); one file per family of ops, named as in ref/.
#pragma once

#include <vector>

#include "base/function_ref.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/packed_weight.h"
#include "kernels/cpu/row_inputs.h"
#include "kernels/dims.h"

namespace slip {

class TileAttention;
struct CodedSide;

class CpuOps : public Ops {
 public:
  CpuOps(ThreadPool& pool, const Loops& loops) : pool_(pool), loops_(loops) {}

  const char* name() const override { return "cpu"; }
  size_t packed_bytes(const WeightInfo& info) const override { return cpu_packed_bytes(info); }
  Weight pack(const Weight& plain, std::span<std::byte> storage) override {
    return cpu_pack(plain, storage);
  }
  // One user's keys stay in the processor's caches; those of many come from memory each time, where
  // half the bytes take half the time.
  KvRecipe usual_kv(int64_t sequences) const override {
    return sequences == 1 ? KvRecipe{} : KvRecipe{KvCodec::bf16, KvCodec::bf16};
  }
  size_t scratch_bytes(const StepLimits& limits) const override;
  void reserve(const StepLimits& wanted) override;

  void embed(const EmbedArgs& args) override;
  void rms_norm(const RmsNormArgs& args) override;
  void linear(const LinearArgs& args) override;
  void linears(const LinearsArgs& args) override;
  void gated_mul(const GatedMulArgs& args) override;
  void soft_cap(const SoftCapArgs& args) override;
  void peaks(const PeaksArgs& args) override;
  void route(const RouteArgs& args) override;
  void experts(const ExpertsArgs& args) override;
  void causal_conv(const CausalConvArgs& args) override;
  void delta_net(const DeltaNetArgs& args) override;
  void gated_rms_norm(const GatedRmsNormArgs& args) override;
  void gated_delta_net(const GatedDeltaNetArgs& args) override;
  void rope_table(const RopeTableArgs& args) override;
  void rotate_and_store(const RotateAndStoreArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void gate_heads(const GateHeadsArgs& args) override;

 private:
  // One weight of a parallel region over blocks of outputs.
  struct LinearJob {
    const Weight* weight;
    float* out;
    int64_t out_stride;
    bool add;
  };

  void run_linear_jobs(std::span<const LinearJob> jobs, const RowInputs& inputs, int64_t rows);
  // Outputs of blocks [first, first + blocks) for some rows, on the calling thread.
  struct TileJob {
    const Weight& weight;
    int64_t first, blocks;
    const RowInput* rows;
    int64_t row_count;
    float* out;  // of the first block
    int64_t out_stride;
    bool add = false;
    const std::byte* next = nullptr;  // weights that are read behind these
  };
  void run_tile(const TileJob& job) const;

  // out = activation(gate) * up
  auto activation_loop(Activation activation) const {
    return activation == Activation::silu ? loops_.silu_mul : loops_.gelu_mul;
  }

  // Codes the pages that a span completes.
  void encode_pages(std::span<const CodedSide, 2> sides, const Span& span);

  // Few rows (decode, verify): threads share kv heads and segments, whose sums are merged.
  void attend_split(const TileAttention& attend, const Span& span);
  // Threads share tiles of so many rows of each span; none: 0.
  void attend_tiles(const TileAttention& attend, std::span<const Span> spans,
                    FunctionRef<int64_t(const Span&)> tile_rows);

  // Runs body(row) for all rows, in parallel when `values` (the work of all) is worth it.
  template <class Body>
  void for_rows(int64_t rows, int64_t values, const Body& body) {
    if (values < kParallelValues) {
      for (int64_t row = 0; row < rows; ++row) body(row);
    } else {
      pool_.run(rows, [&](int64_t row, int) { body(row); });
    }
  }

  // Runs body(span, row of the span) for all rows of all spans, likewise.
  template <class Body>
  void for_span_rows(std::span<const Span> spans, int64_t values_per_row, const Body& body) {
    int64_t rows = 0;
    for (const Span& span : spans) rows += span.rows;
    for_rows(rows, rows * values_per_row, [&](int64_t row) {
      const Span* span = spans.data();
      while (row >= span->rows) row -= (span++)->rows;
      body(*span, row);
    });
  }

  std::span<float> thread_scratch(int thread) const {
    return {reinterpret_cast<float*>(scratch_.data()) + size_t(thread) * scratch_values_,
            scratch_values_};
  }

  // Below this many values an elementwise op ends before a second thread has begun.
  static constexpr int64_t kParallelValues = 8192;

  ThreadPool& pool_;
  const Loops& loops_;
  RowInputs inputs_;         // of linear layers
  RowInputs hidden_inputs_;  // of the experts' down projections
  RowInputs shared_inputs_;  // of the shared expert's
  std::vector<RowInput> expert_rows_;
  std::vector<int32_t> expert_counts_, expert_starts_, active_experts_, slots_;
  Buffer scratch_;  // a part per thread
  StepLimits reserved_;
  size_t scratch_values_ = 0;  // per thread
  Buffer partials_;            // attention over long contexts, see attention.cc
};

}  // namespace slip
