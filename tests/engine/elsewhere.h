// Backends that compute on the host and say that they do not, so that what the engine does for a
// GPU can be tested without one.
#pragma once

#include "tests/gpu/far_memory.h"

namespace slip {

template <class Backend>
class Elsewhere final : public Backend {
 public:
  using Backend::Backend;
  Memory& memory() const override { return memory_; }
  int64_t downloads() const { return memory_.downloads(); }

 private:
  mutable FarMemory memory_;
};

}  // namespace slip
