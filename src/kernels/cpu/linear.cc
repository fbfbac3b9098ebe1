#include <algorithm>

#include "kernels/cpu/cpu_ops_impl.h"

namespace slip {
namespace {

// Blocks of 16 outputs per work item: enough items to balance the threads, and four blocks at a
// time because a single row keeps that many chains busy.
int64_t blocks_per_item(int64_t blocks, int threads) {
  const int64_t share = blocks / (int64_t{4} * threads);
  return std::clamp<int64_t>(share / 4 * 4, 4, 64);
}

// Products below which a thread is done before a second one has begun.
constexpr int64_t kSharedProducts = 65536;

}  // namespace

void CpuOps::run_tile(const TileJob& job) const {
  const Weight& weight = job.weight;
  const LinearTile tile{.weight = weight.values.data,
                        .scales = cpu_trailing_scales(weight),
                        .in = weight.info.in,
                        .group = weight.info.group,
                        .first_block = job.first,
                        .blocks = job.blocks,
                        .out_count = weight.info.out - job.first * kLanes,
                        .rows = job.rows,
                        .row_count = job.row_count,
                        .out = job.out,
                        .out_stride = job.out_stride,
                        .add = job.add,
                        .next = job.next};
  switch (weight.info.format) {
    case WeightFormat::f32: return loops_.linear_f32(tile);
    case WeightFormat::bf16: return loops_.linear_bf16(tile);
    case WeightFormat::f16: return loops_.linear_f16(tile);
    case WeightFormat::fp8_block: return loops_.linear_fp8(tile);
    case WeightFormat::int8_row: return loops_.linear_int8(tile);
    case WeightFormat::int4_group: return loops_.linear_int4(tile);
  }
  unreachable("WeightFormat");
}

void CpuOps::run_linear_jobs(std::span<const LinearJob> jobs, const RowInputs& inputs,
                             int64_t rows) {
  const auto items_of = [&](const LinearJob& job) {
    const int64_t blocks = block_count(job.weight->info.out);
    const int64_t step = blocks_per_item(blocks, pool_.threads());
    return (blocks + step - 1) / step;
  };
  const auto run = [&](const LinearJob& job, int64_t first, int64_t blocks) {
    run_tile({.weight = *job.weight,
              .first = first,
              .blocks = blocks,
              .rows = inputs.rows(),
              .row_count = rows,
              .out = job.out + first * kLanes,
              .out_stride = job.out_stride,
              .add = job.add});
  };
  int64_t items = 0, products = 0;
  for (const LinearJob& job : jobs) {
    items += items_of(job);
    products += rows * job.weight->info.in * job.weight->info.out;
  }
  if (products < kSharedProducts) {
    for (const LinearJob& job : jobs) run(job, 0, block_count(job.weight->info.out));
    return;
  }
  pool_.run(items, [&](int64_t item, int) {
    const LinearJob* job = jobs.data();
    while (item >= items_of(*job)) item -= items_of(*job++);
    const int64_t blocks = block_count(job->weight->info.out);
    const int64_t step = blocks_per_item(blocks, pool_.threads());
    run(*job, item * step, std::min(step, blocks - item * step));
  });
}

void CpuOps::linear(const LinearArgs& args) {
  check_shapes(args);
  const int64_t rows = args.x.shape[0], in = args.x.shape[1], out = args.out.shape[1];
  inputs_.set(args.x.f32(), rows, in, in);
  inputs_.prepare(args.weight.info, loops_, pool_);
  const LinearJob job{&args.weight, args.out.f32(), out, args.add};
  run_linear_jobs({&job, 1}, inputs_, rows);
}

void CpuOps::linears(const LinearsArgs& args) {
  constexpr size_t kMaxJobs = 8;
  check(args.outputs.size() <= kMaxJobs, "linears: more than ", kMaxJobs, " weights");
  const int64_t rows = args.x.shape[0], in = args.x.shape[1];
  inputs_.set(args.x.f32(), rows, in, in);
  LinearJob jobs[kMaxJobs];
  size_t count = 0;
  int64_t group = 0;  // of the codes that the jobs collected so far share
  for (const LinearOutput& output : args.outputs) {
    check_shapes(LinearArgs{.x = args.x, .weight = output.weight, .out = output.out});
    const WeightInfo& info = output.weight.info;
    if (uses_integer_activations(info.format)) {
      if (group != 0 && group != activation_group(info)) {
        run_linear_jobs({jobs, count}, inputs_, rows);
        count = 0;
      }
      group = activation_group(info);
      inputs_.prepare(info, loops_, pool_);
    }
    jobs[count++] = {&output.weight, output.out.f32(), output.out.shape[1], false};
  }
  run_linear_jobs({jobs, count}, inputs_, rows);
}

}  // namespace slip
