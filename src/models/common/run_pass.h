// Names the passes of a model for Ops::run_step().
#pragma once

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "base/check.h"
#include "kernels/ops.h"

namespace slip {

enum class PassKind : uint8_t { forward, draft };

// `buffers` are those that the caller hands in.
inline StepKey step_key(const void* owner, PassKind kind, int64_t rows,
                        std::span<const int64_t> outputs,
                        std::initializer_list<const void*> buffers) {
  StepKey key{.owner = owner,
              .kind = int64_t(kind),
              .rows = rows,
              .outputs = int64_t(outputs.size()),
              .first_output = outputs.empty() ? 0 : outputs.front()};
  check(buffers.size() <= std::size(key.buffers), "a pass with ", buffers.size(), " buffers");
  std::copy(buffers.begin(), buffers.end(), key.buffers);
  return key;
}

}  // namespace slip
