// Weights of floats in steps of few rows, where there are none in slabs beside them.
#include "kernels/cuda/float_outputs.cuh"
#include "kernels/cuda/joined_row.cuh"
#include "kernels/cuda/normed_row.cuh"

namespace slip {
namespace {

constexpr int kMostFloatNormSlabs = 4;
constexpr int kNarrowSlabs = 2;  // not more than there are parts

constexpr int kSharingRows = 4;  // rows that read a weight once

// A block per pair of outputs and kRows rows.
template <class Row, bool kQuads, int kRows>
__global__ void __launch_bounds__(kFloatThreads)
    floats_kernel(const __grid_constant__ LinearInput input,
                  const __grid_constant__ LinearJobs jobs, bool add) {
  let_next_begin();
  constexpr int kSlabs = 4;
  __shared__ FloatPartials partials[kRows];
  using Pair = FloatPair<Row, kFloatWarps, kSlabs>;
  Pair pair(jobs, int(blockIdx.x), int(input.in));
  typename Pair::Sums sums[kRows];
  const int64_t first = int64_t(blockIdx.y) * kRows;
  const int rows = int(min(int64_t(kRows), input.rows - first));
  wait_for_inputs();
  const float* x = input.x + first * input.in;
#pragma unroll 1
  for (int begin = 0;;) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (row >= rows) break;
      float4 quads[kSlabs];
#pragma unroll
      for (int i = 0; i < kSlabs; ++i)
        quads[i] = load_quad<kQuads>(x + row * input.in, pair.column(begin, i), input.in);
      pair.add(quads, sums[row]);
    }
    begin += pair.kStride;
    if (begin * kFloatSlab >= input.in) break;
    pair.ask(begin);
  }
#pragma unroll
  for (int row = 0; row < kRows; ++row)
    if (row < rows) pair.put(sums[row], partials[row]);
  __syncthreads();
  const int row = int(threadIdx.x) / kWarp;
  if (row < rows) pair.finish(partials[row], int(threadIdx.x) % kWarp, first + row, add);
}

// Rows so narrow that a warp has all of a pair's weights, a part each slab: the bits are the same,
// since parts of nothing add nothing. A warp per pair, and kSharingRows rows a block.
template <class Row, bool kQuads>
__global__ void __launch_bounds__(kFloatThreads)
    narrow_floats_kernel(const __grid_constant__ LinearInput input,
                         const __grid_constant__ LinearJobs jobs, bool add) {
  let_next_begin();
  const int pair = int(blockIdx.x) * kFloatWarps + int(threadIdx.x) / kWarp;
  const int lane = int(threadIdx.x) % kWarp, in = int(input.in);
  if (pair >= jobs.units) return;
  int which = 0;
#pragma unroll 1
  while (pair >= jobs.list[which].end) ++which;
  const LinearJob& job = jobs.list[which];
  const int64_t output =
      int64_t(pair - (which == 0 ? 0 : jobs.list[which - 1].end)) * kFloatOutputs;
  typename Row::Quad loaded[kFloatOutputs][kNarrowSlabs];
#pragma unroll
  for (int o = 0; o < kFloatOutputs; ++o) {
    const int64_t from = min(output + o, job.weight.out - 1);  // one past the last is not written
    const std::byte* row = job.weight.values + from * float_row_bytes<Row>(in);
#pragma unroll
    for (int i = 0; i < kNarrowSlabs; ++i) {
      const int at = i * kFloatSlab + lane * kQuad;
      loaded[o][i] = at < in ? Row::load(row + at * (sizeof(typename Row::Quad) / kQuad))
                             : typename Row::Quad{};
    }
  }
  const int64_t first = int64_t(blockIdx.y) * kSharingRows;
  const int rows = int(min(int64_t(kSharingRows), input.rows - first));
  wait_for_inputs();
#pragma unroll
  for (int row = 0; row < kSharingRows; ++row) {
    if (row >= rows) break;
    const float* x = input.x + (first + row) * in;
    float sums[kFloatOutputs] = {};
#pragma unroll
    for (int i = 0; i < kNarrowSlabs; ++i) {
      const float4 quad = load_quad<kQuads>(x, i * kFloatSlab + lane * kQuad, in);
#pragma unroll
      for (int o = 0; o < kFloatOutputs; ++o)
        sums[o] += warp_sum(float_products(Row::widen(loaded[o][i]), quad, 0.0f));
    }
    if (lane < kFloatOutputs && output + lane < job.weight.out) {
      float* out = job.out + (first + row) * job.weight.out + output + lane;
      const float sum = lane == 0 ? sums[0] : sums[1];
      *out = add ? *out + sum : sum;
    }
  }
}

// A block per pair of outputs of a row. with_row(index, use) makes the row while weights are on
// their way, and calls use(what the warp has of it).
template <int kSlabs, class WithRow>
__device__ __forceinline__ void floats_of_row(const LinearInput& input, const LinearJobs& jobs,
                                              const WithRow& with_row) {
  let_next_begin();
  __shared__ FloatPartials partials;
  using Pair = FloatPair<Bf16Row, kFloatWarps, kSlabs>;
  const Pair pair(jobs, int(blockIdx.x), int(input.in));
  const int row = int(blockIdx.y);
  with_row(row, [&](const float4(&x)[kSlabs]) {
    typename Pair::Sums sums;
    pair.add(x, sums);
    pair.put(sums, partials);
  });
  __syncthreads();
  pair.finish(partials, int(threadIdx.x), row, false);
}

// Rows that are normed on their way in.
template <int kSlabs>
__global__ void __launch_bounds__(kFloatThreads)
    normed_floats_kernel(const __grid_constant__ LinearInput input,
                         const __grid_constant__ LinearNorm norm,
                         const __grid_constant__ LinearJobs jobs) {
  __shared__ float squares[kSlabs * kFloatWarps];
  floats_of_row<kSlabs>(input, jobs, [&](int row, const auto& use) {
    use(NormedRow<kFloatWarps, kSlabs>(input, row, norm, squares, [] {}).x);
  });
}

// Rows that a branch joins.
template <int kSlabs>
__global__ void __launch_bounds__(kFloatThreads)
    joined_floats_kernel(const __grid_constant__ LinearInput input,
                         const __grid_constant__ BranchParams branch,
                         const __grid_constant__ LinearJobs jobs) {
  __shared__ float squares[kJoinNorms * kSlabs * kFloatWarps];
  floats_of_row<kSlabs>(input, jobs, [&](int index, const auto& use) {
    JoinedRow<kSlabs> row(branch, index, squares, [] {});
    row.find_norm();
    const RowPart<kSlabs> normed = row.output(0);
    use(normed.quads);
    row.share_stores(normed);
  });
}

template <class Row>
void launch_floats_of(const Launcher& launcher, const LinearInput& input, const LinearJobs& floats,
                      bool add) {
  const auto sharing = unsigned((input.rows + kSharingRows - 1) / kSharingRows);
  const auto units = unsigned(floats.units);
  if (input.in <= kNarrowSlabs * kFloatSlab) {
    const auto kernel =
        input.quads ? narrow_floats_kernel<Row, true> : narrow_floats_kernel<Row, false>;
    launch(launcher, dim3((units + kFloatWarps - 1) / kFloatWarps, sharing), kFloatThreads, 0,
           kernel, input, floats, add);
  } else if (input.rows == 1) {
    const auto kernel = input.quads ? floats_kernel<Row, true, 1> : floats_kernel<Row, false, 1>;
    launch(launcher, units, kFloatThreads, 0, kernel, input, floats, add);
  } else {
    const auto kernel = input.quads ? floats_kernel<Row, true, kSharingRows>
                                    : floats_kernel<Row, false, kSharingRows>;
    launch(launcher, dim3(units, sharing), kFloatThreads, 0, kernel, input, floats, add);
  }
}

LinearJobs of_format(const LinearJobs& jobs, DeviceFormat format) {
  LinearJobs some;
  for (int i = 0; i < jobs.count; ++i) {
    const LinearJob& job = jobs.list[i];
    if (job.weight.format == format)
      some.add(job.weight, job.out, job.end - (i == 0 ? 0 : jobs.list[i - 1].end));
  }
  return some;
}

}  // namespace

bool all_bf16(const LinearJobs& floats) {
  return of_format(floats, DeviceFormat::bf16).count == floats.count;
}

void floats_few_rows(const Launcher& launcher, const LinearInput& input, const LinearJobs& floats,
                     bool add) {
  if (const LinearJobs some = of_format(floats, DeviceFormat::bf16); some.count > 0)
    launch_floats_of<Bf16Row>(launcher, input, some, add);
  if (const LinearJobs some = of_format(floats, DeviceFormat::f16); some.count > 0)
    launch_floats_of<F16Row>(launcher, input, some, add);
  if (const LinearJobs some = of_format(floats, DeviceFormat::f32); some.count > 0)
    launch_floats_of<F32Row>(launcher, input, some, add);
}

bool norms_floats(const LinearInput& input, const LinearJobs& floats) {
  return floats.count > 0 && input.rows > 0 && input.rows <= kFewLinearRows && input.quads &&
         input.in <= kMostFloatNormSlabs * kFloatWarps * kNormSlab && all_bf16(floats);
}

void norm_into_floats(const Launcher& launcher, const LinearInput& input, const LinearNorm& norm,
                      const LinearJobs& floats) {
  const int64_t slabs = slab_count(input.in);
  const auto kernel = slabs <= 2 * kFloatWarps   ? normed_floats_kernel<2>
                      : slabs <= 3 * kFloatWarps ? normed_floats_kernel<3>
                                                 : normed_floats_kernel<kMostFloatNormSlabs>;
  launch(launcher, dim3(unsigned(floats.units), unsigned(input.rows)), kFloatThreads, 0, kernel,
         input, norm, floats);
}

// Every block joins its row, which is more than it multiplies: that pays while blocks run at once,
// as those of a router.
bool joins_into_floats(const Launcher& launcher, const LinearInput& input, const LinearJobs& slabs,
                       const LinearJobs& floats) {
  constexpr int64_t kBlocksAtOnce = 4;  // of a multiprocessor
  return slabs.count == 0 && norms_floats(input, floats) &&
         floats.units * input.rows <= kBlocksAtOnce * launcher.multiprocessors;
}

void join_into_floats(const Launcher& launcher, const LinearInput& input,
                      const BranchParams& branch, const LinearJobs& floats) {
  const int64_t slabs = slab_count(input.in);
  const auto kernel = slabs <= 2 * kFloatWarps   ? joined_floats_kernel<2>
                      : slabs <= 3 * kFloatWarps ? joined_floats_kernel<3>
                                                 : joined_floats_kernel<kMostFloatNormSlabs>;
  launch(launcher, dim3(unsigned(floats.units), unsigned(input.rows)), kFloatThreads, 0, kernel,
         input, branch, floats);
}

}  // namespace slip
