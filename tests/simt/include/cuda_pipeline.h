// Copies to shared memory, for tests on a CPU.
#pragma once

#include "tests/simt/warps.h"

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes) {
  simt::copy_later(to, from, bytes);
}
inline void __pipeline_commit() { simt::end_copy_group(); }
inline void __pipeline_wait_prior(size_t groups) { simt::wait_for_copies(int(groups)); }
