// Rows that several blocks need rounded are rounded once, by a kernel that has little else to do.
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/rounded_rows.cuh"

namespace slip {
namespace {

constexpr int kRoundThreads = 256;

// A warp per slab of a row.
template <bool kGated, bool kQuads, RowForm kForm>
__global__ void round_kernel(const __grid_constant__ RowsToRound p) {
  let_next_begin();
  wait_for_inputs();
  const int index = int(blockIdx.x) * (kRoundThreads / kWarp) + int(threadIdx.x) / kWarp;
  if (index >= p.rows * p.slabs) return;
  const int64_t i = int64_t(index) * kSlabIn + int(threadIdx.x) % kWarp * kQuad;
  float4 x = load_quad<kQuads>(p.x, i, i + kQuad);
  if constexpr (kGated) {
    const float4 up = load_quad<kQuads>(p.up, i, i + kQuad);
    x = make_float4(activated(x.x, p.gelu) * up.x, activated(x.y, p.gelu) * up.y,
                    activated(x.z, p.gelu) * up.z, activated(x.w, p.gelu) * up.w);
  }
  gemv::round_to<kForm>(p.rounded.memory, x, index / p.slabs, p.rows, index % p.slabs, p.slabs);
}

template <RowForm kForm>
auto kernel_for(const RowsToRound& rows) {
  return rows.up ? rows.quads ? round_kernel<true, true, kForm> : round_kernel<true, false, kForm>
         : rows.quads ? round_kernel<false, true, kForm>
                      : round_kernel<false, false, kForm>;
}

}  // namespace

void round_few_rows(const Launcher& launcher, const RowsToRound& rows) {
  constexpr int kWarps = kRoundThreads / kWarp;
  const auto kernel = rows.rounded.form == RowForm::integers ? kernel_for<RowForm::integers>(rows)
                                                             : kernel_for<RowForm::halves>(rows);
  launch(launcher, unsigned((rows.rows * rows.slabs + kWarps - 1) / kWarps), kRoundThreads, 0,
         kernel, rows);
}

}  // namespace slip
