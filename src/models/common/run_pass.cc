#include "models/common/run_pass.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace slip {
namespace {

enum class PassKind : uint8_t { forward, draft };

// Of a step's first pass. `buffers` are those that the caller of the model hands in.
template <class AnyStep>
StepKey key_of(PassKind kind, const PassOwner& owner, const AnyStep& step,
               std::initializer_list<const void*> buffers) {
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
  return key;
}

// Those of all passes, which lie one after the other.
std::span<const Span> spans_of(std::span<const DraftStep> steps) {
  const Span* const first = steps.front().spans.data();
  size_t count = 0;
  for (const DraftStep& step : steps) {
    check(step.spans.data() == first + count, "passes whose spans are not neighbours");
    count += step.spans.size();
  }
  return {first, count};
}

}  // namespace

void run_pass(const PassOwner& owner, const Step& step, FunctionRef<void()> body) {
  const StepKey key = key_of(PassKind::forward, owner, step,
                             {step.ids.data, step.logits.data, step.hidden.data, step.peaks.data});
  owner.ops.run_step(key, step.spans, body);
}

void run_passes(const PassOwner& owner, std::span<const DraftStep> steps,
                FunctionRef<void(const DraftStep&)> body) {
  const DraftStep& first = steps.front();
  StepKey key = key_of(PassKind::draft, owner, first,
                       {first.ids.data, first.hidden.data, first.logits.data,
                        first.next_hidden.data, first.peaks.data, first.next_ids.data});
  key.passes = int64_t(steps.size());
  owner.ops.run_step(key, spans_of(steps), [&] {
    for (const DraftStep& step : steps) body(step);
  });
}

}  // namespace slip
