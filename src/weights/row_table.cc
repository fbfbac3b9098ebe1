#include "weights/row_table.h"

#include <algorithm>
#include <cstring>

#include "quant/widen_row.h"

namespace slip {
namespace {

// The rows of a step that decodes go in one copy, a prompt's in pieces that stay in the caches.
constexpr size_t kGatheredBytes = size_t{512} << 10;

size_t row_bytes(const Weight& table) { return table.values.bytes() / size_t(table.info.out); }

}  // namespace

void RowTable::upload(std::span<const int32_t> ids, Memory& memory, std::byte* to) const {
  const size_t bytes = row_bytes(weight), at_once = gathered.size() / bytes;
  check(at_once > 0, "rows of ", bytes, " bytes on their way in ", gathered.size());
  while (!ids.empty()) {
    const size_t count = std::min(ids.size(), at_once);
    for (size_t i = 0; i < count; ++i) {
      check(ids[i] >= 0 && ids[i] < weight.info.out, "row ", ids[i], " of ", weight.info.out);
      std::memcpy(gathered.data() + i * bytes, weight.values.data + size_t(ids[i]) * bytes, bytes);
    }
    memory.upload(to, gathered.data(), count * bytes);
    to += count * bytes;
    ids = ids.subspan(count);
  }
}

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
  table.gathered = Buffer(host_memory(), std::max(kGatheredBytes, row_bytes(table.weight)));
  return table;
}

}  // namespace slip
