#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quads.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

LinearInput linear_input(const View& x) {
  const int64_t in = x.shape[1];
  return {x.f32(), x.shape[0], in, rows_of_quads(in, {x.data})};
}

}  // namespace

void CudaOps::linear(const LinearArgs& args) {
  const LinearOutput output{args.weight, args.out};
  run_linears(args.x, {&output, 1}, args.add);
}

void CudaOps::linears(const LinearsArgs& args) { run_linears(args.x, args.outputs, false); }

void CudaOps::run_linears(const View& x, std::span<const LinearOutput> outputs, bool add) {
  check(outputs.size() <= kMaxLinears, "linears: more than ", kMaxLinears, " weights");
  LinearJobs slabs, floats;
  for (const LinearOutput& output : outputs) {
    check_shapes(LinearArgs{.x = x, .weight = output.weight, .out = output.out});
    const DeviceWeight weight = device_weight(output.weight);
    if (in_slabs(weight.format))
      slabs.add(weight, output.out.f32(), tile_count(weight.out));
    else
      floats.add(weight, output.out.f32(), (weight.out + kFloatOutputs - 1) / kFloatOutputs);
  }
  const LinearInput input = linear_input(x);
  if (input.rows == 0) return;
  if (input.rows <= kFewLinearRows) return linear_few_rows(launcher_, input, slabs, floats, add);

  if (slabs.count > 0) {
    std::byte* rounded = scratch(rounded_rows_bytes(input.rows, input.in));
    round_rows(launcher_, input, rounded);
    for (int i = 0; i < slabs.count; ++i)
      linear_many_rows(launcher_, rounded, input.rows, slabs.list[i].weight, slabs.list[i].out,
                       add);
  }
  for (int i = 0; i < floats.count; ++i)
    linear_floats_many_rows(launcher_, input, floats.list[i].weight, floats.list[i].out, add);
}

}  // namespace slip
