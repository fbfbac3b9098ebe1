#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/weight_values.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;  // values, all asked for at once
constexpr int kPerBlock = kThreads * kPerThread;

// Block (row, part of its values). row_bytes: from one row of floats to the next.
__global__ void embed_kernel(DeviceWeight table, bool slabs, int64_t row_bytes, const int32_t* ids,
                             float factor, float* out) {
  let_next_begin();
  wait_for_inputs();
  const int64_t row = blockIdx.x;
  const int64_t id = ids ? ids[row] : row;
  const int64_t first = blockIdx.y * int64_t{kPerBlock} + threadIdx.x;
#pragma unroll
  for (int part = 0; part < kPerThread; ++part) {
    const int64_t i = first + part * kThreads;
    if (i < table.in)
      out[row * table.in + i] =
          factor * (slabs ? slab_value(table, id, i)
                          : float_value(table.values + id * row_bytes, table.format, i));
  }
}

// Of a table that is not packed.
DeviceFormat row_format(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32: return DeviceFormat::f32;
    case WeightFormat::bf16: return DeviceFormat::bf16;
    case WeightFormat::f16: return DeviceFormat::f16;
    default: unreachable("WeightFormat of a table that is not packed");
  }
}

}  // namespace

void CudaOps::embed(const EmbedArgs& args) {
  const Dims dims = check_shapes(args);
  if (dims["rows"] == 0) return;
  const WeightInfo& info = args.table.info;
  DeviceWeight table = device_weight(args.table);
  if (!args.table.packed) table.format = row_format(info.format);
  const size_t row_bytes =
      args.table.packed ? padded_row_bytes(info) : args.table.values.bytes() / size_t(info.out);
  const dim3 grid{unsigned(dims["rows"]), unsigned((info.in + kPerBlock - 1) / kPerBlock)};
  launch(launcher_, grid, kThreads, 0, embed_kernel, table, in_slabs(table.format),
         int64_t(row_bytes), args.ids.empty() ? nullptr : args.ids.i32(), args.factor,
         args.out.f32());
}

}  // namespace slip
