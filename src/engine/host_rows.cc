#include "engine/host_rows.h"

namespace slip {

HostRows::HostRows(Memory& memory, int64_t rows, int64_t width)
    : memory_(&memory), tensor_(memory, DType::f32, {rows, width}) {
  if (!memory.on_host()) copy_ = Tensor(memory.staging(), DType::f32, {rows, width});
}

std::span<float> HostRows::row(int64_t index) {
  if (stale_ > 0) {
    const View rows = tensor_.view.first(stale_);
    memory_->download(copy_.view.data, rows.data, rows.bytes());
    stale_ = 0;
  }
  const View row = (memory_->on_host() ? tensor_ : copy_).view.slice(index, 1);
  return {row.f32(), size_t(row.count())};
}

}  // namespace slip
