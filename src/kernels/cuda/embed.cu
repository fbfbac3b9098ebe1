#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/weight_values.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kThreads = 256;

// grid.x: rows
__global__ void embed_kernel(DeviceWeight table, bool slabs, const int32_t* ids, float factor,
                             float* out) {
  wait_for_inputs();
  const int64_t row = blockIdx.x;
  const int64_t id = ids ? ids[row] : row;
  for (int64_t i = threadIdx.x; i < table.in; i += kThreads)
    out[row * table.in + i] =
        factor * (slabs ? slab_value(table, id, i) : float_value(table, id, i));
}

}  // namespace

void CudaOps::embed(const EmbedArgs& args) {
  const Dims dims = check_shapes(args);
  if (dims["rows"] == 0) return;
  if (!args.table.packed) return embed_from_host(args);
  launch(launcher_, unsigned(dims["rows"]), kThreads, 0, embed_kernel, device_weight(args.table),
         in_slabs(args.table.info.format), args.ids.i32(), args.factor, args.out.f32());
}

void CudaOps::embed_from_host(const EmbedArgs& args) {
  const WeightInfo& info = args.table.info;
  check(!in_slabs(info.format), "embed: a table in host memory has 16 or 32 bits");
  const int64_t rows = args.ids.shape[0];
  HostGather& gather = host_gathers_[{args.table.values.data, records(rows) ? rows : 0}];
  const std::byte* values = gather.fetch(launcher_.stream, args.table, args.ids.i32(), rows);
  const DeviceWeight fetched{values, nullptr, rows, info.in, 0, info.format};
  launch(launcher_, unsigned(rows), kThreads, 0, embed_kernel, fetched, false, nullptr, args.factor,
         args.out.f32());
}

}  // namespace slip
