// A backend whose prompts are computed by other means than decoded tokens, as on GPUs: there the
// bits of a prompt depend on how it is cut into steps.
#pragma once

#include <memory>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_ops_impl.h"
#include "tests/golden/loaded_model.h"

namespace slip {

// Steps of more rows than it has invariant ones give results that depend on their number.
class CutSensitiveOps : public CpuOps {
 public:
  static constexpr int64_t kInvariantRows = 16;

  explicit CutSensitiveOps(ThreadPool& pool)
      : CpuOps(pool, loops_for(available_isas().front(), 2)) {}

  int64_t invariant_rows() const override { return kInvariantRows; }
  void linears(const LinearsArgs& args) override {
    CpuOps::linears(args);
    const int64_t rows = args.x.shape[0];
    if (rows <= kInvariantRows) return;
    for (const LinearOutput& output : args.outputs)
      for (int64_t i = 0; i < output.out.count(); ++i)
        output.out.f32()[i] *= 1.0f + 0.002f * float(rows % 13);
  }
};

inline Backend cut_sensitive() {
  return {"cut_sensitive",
          [](ThreadPool& pool) -> std::unique_ptr<Ops> {
            return std::make_unique<CutSensitiveOps>(pool);
          },
          CutSensitiveOps::kInvariantRows};
}

}  // namespace slip
