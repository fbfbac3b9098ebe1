// Linear layers of many rows with weights in plain rows: sums of floats, as the formats have them.
// In the models that this backend is made for, routers and other narrow layers.
#include "kernels/cuda/float_formats.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quads.cuh"

namespace slip {
namespace {

constexpr int kTile = 64;   // outputs and rows of a block
constexpr int kDepth = 32;  // inputs at a time
constexpr int kThreads = 256;
constexpr int kShare = kTile * kDepth / kThreads;  // values of each tile that a thread brings
constexpr int kPadded = kTile + 4;

// Values [column, column + 8) of a row of weights; zero past its end.
template <class Piece>
__device__ __forceinline__ void load_weights(const std::byte* row, int64_t column, int64_t in,
                                             float (&values)[kShare]) {
  constexpr int kPieces = kShare / Piece::kValues;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int64_t piece = column / Piece::kValues + i;
    float some[Piece::kValues] = {};
    if (piece < pieces_of_row<Piece>(in))
      Piece::widen(reinterpret_cast<const uint4*>(row)[piece], some);
#pragma unroll
    for (int j = 0; j < Piece::kValues; ++j) values[i * Piece::kValues + j] = some[j];
  }
}

template <bool kQuads>
__device__ __forceinline__ void load_inputs(const float* row, int64_t column, int64_t in,
                                            float (&values)[kShare]) {
#pragma unroll
  for (int i = 0; i < kShare; i += kQuad) {
    const float4 quad = load_quad<kQuads>(row, column + i, in);
    values[i] = quad.x;
    values[i + 1] = quad.y;
    values[i + 2] = quad.z;
    values[i + 3] = quad.w;
  }
}

// grid: blocks of rows x blocks of outputs. A thread has 4 x 4 sums.
template <class Piece, bool kQuads>
__global__ void __launch_bounds__(kThreads)
    floats_many_rows_kernel(LinearInput input, DeviceWeight weight, float* out, bool add) {
  __shared__ float4 w_tile[kDepth][kPadded / 4], x_tile[kDepth][kPadded / 4];  // [input][...]
  const int64_t in = input.in;
  const int64_t first_row = int64_t(blockIdx.x) * kTile;
  const int64_t first_output = int64_t(blockIdx.y) * kTile;

  // A thread brings eight values of one output and of one row. Past the end: of the last, not
  // written.
  const int which = int(threadIdx.x) % kTile, column = int(threadIdx.x) / kTile * kShare;
  const int64_t output = min(first_output + which, weight.out - 1);
  const std::byte* w_row = weight.values + output * pieces_of_row<Piece>(in) * 16;
  const float* x_row = input.x + min(first_row + which, input.rows - 1) * in;
  float w[kShare], x[kShare];

  const int out_quad = int(threadIdx.x) % 16, row_quad = int(threadIdx.x) / 16;
  float sums[4][4] = {};  // [row][output]

  load_weights<Piece>(w_row, column, in, w);
  wait_for_inputs();
  load_inputs<kQuads>(x_row, column, in, x);
  for (int64_t k = 0; k < in; k += kDepth) {
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      reinterpret_cast<float*>(w_tile[column + i])[which] = w[i];
      reinterpret_cast<float*>(x_tile[column + i])[which] = x[i];
    }
    __syncthreads();
    if (k + kDepth < in) {
      load_weights<Piece>(w_row, k + kDepth + column, in, w);
      load_inputs<kQuads>(x_row, k + kDepth + column, in, x);
    }
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      const float4 a = w_tile[i][out_quad], b = x_tile[i][row_quad];
      const float ws[4] = {a.x, a.y, a.z, a.w}, xs[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int o = 0; o < 4; ++o) sums[r][o] = __fmaf_rn(ws[o], xs[r], sums[r][o]);
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int64_t row = first_row + row_quad * 4 + r;
    if (row >= input.rows) break;
#pragma unroll
    for (int o = 0; o < 4; ++o) {
      const int64_t column_out = first_output + out_quad * 4 + o;
      if (column_out >= weight.out) break;
      float& result = out[row * weight.out + column_out];
      result = add ? result + sums[r][o] : sums[r][o];
    }
  }
}

template <class Piece>
void launch_floats(const Launcher& launcher, const LinearInput& input, const DeviceWeight& weight,
                   float* out, bool add) {
  const dim3 grid(unsigned((input.rows + kTile - 1) / kTile),
                  unsigned((weight.out + kTile - 1) / kTile));
  launch(launcher, grid, kThreads, 0,
         input.quads ? floats_many_rows_kernel<Piece, true> : floats_many_rows_kernel<Piece, false>,
         input, weight, out, add);
}

}  // namespace

void linear_floats_many_rows(const Launcher& launcher, const LinearInput& input,
                             const DeviceWeight& weight, float* out, bool add) {
  switch (weight.format) {
    case WeightFormat::f32: return launch_floats<F32Piece>(launcher, input, weight, out, add);
    case WeightFormat::bf16: return launch_floats<Bf16Piece>(launcher, input, weight, out, add);
    case WeightFormat::f16: return launch_floats<F16Piece>(launcher, input, weight, out, add);
    default: unreachable("WeightFormat");
  }
}

}  // namespace slip
