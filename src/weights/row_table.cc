#include "weights/row_table.h"

#include "quant/widen_row.h"

namespace slip {

Status check_row_table(const std::string& module, const WeightInfo& info) {
  if (is_plain_float(info.format)) return {};
  return error("tensor ", module, ": rows are looked up in it, which needs BF16, F16 or F32; the ",
               "file has ", name_of(info.format));
}

Result<RowTable> open_row_table(WeightSource& source, const std::string& module, int64_t rows,
                                int64_t columns) {
  SLIP_TRY(const WeightInfo info, source.describe(module, rows, columns));
  SLIP_TRY_STATUS(check_row_table(module, info));
  RowTable table;
  std::byte* bytes = const_cast<std::byte*>(source.mapped(module, info).data());
  const size_t alignment = info.format == WeightFormat::f32 ? sizeof(float) : sizeof(uint16_t);
  if (!bytes || reinterpret_cast<uintptr_t>(bytes) % alignment != 0) {
    table.owned = Buffer(host_memory(), plain_bytes(info));
    bytes = table.owned.data();
    if (!source.noise_seed(module)) SLIP_TRY_STATUS(source.read(module, plain_weight(info, bytes)));
  }
  table.weight = plain_weight(info, bytes);
  return table;
}

}  // namespace slip
