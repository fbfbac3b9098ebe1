#include "models/common/run_pass.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace slip {
namespace {

enum class PassKind : uint8_t { forward, draft };

// `buffers` are those that the caller of the model hands in.
template <class AnyStep>
void run_as(PassKind kind, const PassOwner& owner, const AnyStep& step,
            std::initializer_list<const void*> buffers, FunctionRef<void()> body) {
  const int64_t rows = step.ids.shape[0];
  check(rows <= owner.max_rows, "a step of ", rows, " rows; the model was made for ",
        owner.max_rows);
  StepKey key{.owner = owner.owner,
              .kind = int64_t(kind),
              .rows = rows,
              .outputs = int64_t(step.outputs.size()),
              .first_output = step.outputs.empty() ? 0 : step.outputs.front()};
  check(buffers.size() <= std::size(key.buffers), "a pass with ", buffers.size(), " buffers");
  std::copy(buffers.begin(), buffers.end(), key.buffers);
  owner.ops.run_step(key, step.spans, body);
}

}  // namespace

void run_pass(const PassOwner& owner, const Step& step, FunctionRef<void()> body) {
  run_as(PassKind::forward, owner, step,
         {step.ids.data, step.logits.data, step.hidden.data, step.peaks.data}, body);
}

void run_pass(const PassOwner& owner, const DraftStep& step, FunctionRef<void()> body) {
  run_as(
      PassKind::draft, owner, step,
      {step.ids.data, step.hidden.data, step.logits.data, step.next_hidden.data, step.peaks.data},
      body);
}

}  // namespace slip
