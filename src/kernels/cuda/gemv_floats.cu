// Weights of floats in steps of few rows, where there are none in slabs beside them.
#include "kernels/cuda/float_outputs.cuh"
#include "kernels/cuda/normed_row.cuh"

namespace slip {
namespace {

constexpr int kMostFloatNormSlabs = 4;

// A block per row and pair of outputs.
template <class Row, bool kQuads>
__global__ void __launch_bounds__(kFloatThreads)
    floats_kernel(const __grid_constant__ LinearInput input,
                  const __grid_constant__ LinearJobs jobs, bool add) {
  let_next_begin();
  constexpr int kSlabs = 4;
  __shared__ FloatPartials partials;
  using Pair = FloatPair<Row, kFloatWarps, kSlabs>;
  Pair pair(jobs, int(blockIdx.x), int(input.in));
  typename Pair::Sums sums;
  wait_for_inputs();
  const float* x = input.x + blockIdx.y * input.in;
#pragma unroll 1
  for (int begin = 0;;) {
    float4 quads[kSlabs];
#pragma unroll
    for (int i = 0; i < kSlabs; ++i)
      quads[i] = load_quad<kQuads>(x, pair.column(begin, i), input.in);
    pair.add(quads, sums);
    begin += pair.kStride;
    if (begin * kFloatSlab >= input.in) break;
    pair.ask(begin);
  }
  pair.put(sums, partials);
  __syncthreads();
  pair.finish(partials, int(threadIdx.x), blockIdx.y, add);
}

// The same of rows that are to be normed.
template <int kNormSlabs>
__global__ void __launch_bounds__(kFloatThreads)
    normed_floats_kernel(const __grid_constant__ LinearInput input,
                         const __grid_constant__ LinearNorm norm,
                         const __grid_constant__ LinearJobs jobs) {
  let_next_begin();
  __shared__ float squares[kNormSlabs * kFloatWarps];
  __shared__ FloatPartials partials;
  using Pair = FloatPair<Bf16Row, kFloatWarps, kNormSlabs>;
  const Pair pair(jobs, int(blockIdx.x), int(input.in));
  typename Pair::Sums sums;
  const int row = int(blockIdx.y);
  const NormedRow<kFloatWarps, kNormSlabs> normed(input, row, norm, squares, [] {});
  pair.add(normed.x, sums);
  pair.put(sums, partials);
  __syncthreads();
  pair.finish(partials, int(threadIdx.x), row, false);
}

template <class Row>
void launch_floats_of(const Launcher& launcher, const LinearInput& input, const LinearJobs& floats,
                      bool add) {
  const auto kernel = input.quads ? floats_kernel<Row, true> : floats_kernel<Row, false>;
  launch(launcher, dim3(unsigned(floats.units), unsigned(input.rows)), kFloatThreads, 0, kernel,
         input, floats, add);
}

LinearJobs of_format(const LinearJobs& jobs, WeightFormat format) {
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
  return of_format(floats, WeightFormat::bf16).count == floats.count;
}

void floats_few_rows(const Launcher& launcher, const LinearInput& input, const LinearJobs& floats,
                     bool add) {
  if (const LinearJobs some = of_format(floats, WeightFormat::bf16); some.count > 0)
    launch_floats_of<Bf16Row>(launcher, input, some, add);
  if (const LinearJobs some = of_format(floats, WeightFormat::f16); some.count > 0)
    launch_floats_of<F16Row>(launcher, input, some, add);
  if (const LinearJobs some = of_format(floats, WeightFormat::f32); some.count > 0)
    launch_floats_of<F32Row>(launcher, input, some, add);
}

bool norms_floats(const LinearInput& input, const LinearJobs& floats) {
  return floats.count > 0 && input.rows <= kFewLinearRows && input.quads &&
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

}  // namespace slip
