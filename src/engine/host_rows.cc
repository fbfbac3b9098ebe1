#include "engine/host_rows.h"

namespace slip {

HostRows::HostRows(Memory& memory, int64_t rows, int64_t width, Written written)
    : memory_(&memory),
      tensor_(written == Written::here ? memory.staging() : memory, DType::f32, {rows, width}) {
  if (!memory.on_host() && written == Written::there)
    copy_ = Tensor(memory.staging(), DType::f32, {rows, width});
}

std::span<float> HostRows::row(int64_t index) {
  const bool copied = !copy_.view.empty();
  if (stale_ > 0 && copied) {
    const View rows = tensor_.view.first(stale_);
    memory_->download(copy_.view.data, rows.data, rows.bytes());
  } else if (stale_ > 0) {
    memory_->wait();
  }
  stale_ = 0;
  const View row = (copied ? copy_ : tensor_).view.slice(index, 1);
  return {row.f32(), size_t(row.count())};
}

}  // namespace slip
