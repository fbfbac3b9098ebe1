#include "slipstream/bench/users.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "engine/sampling.h"
#include "engine/step_batch.h"
#include "slipstream/bench/arbitrary_ids.h"

namespace slip {
namespace {

// Sequences that are closed again.
class OpenSequences {
 public:
  explicit OpenSequences(Cache& cache) : cache_(cache) {}
  ~OpenSequences() {
    for (const SequenceId id : ids_) cache_.close(id);
  }
  OpenSequences(const OpenSequences&) = delete;
  OpenSequences& operator=(const OpenSequences&) = delete;

  Status open(int64_t positions) {
    SLIP_TRY(const SequenceId id, cache_.open());
    ids_.push_back(id);
    if (positions == 0) return {};
    SLIP_TRY([[maybe_unused]] const Span span, cache_.extend(id, positions, Cache::Rows::certain));
    cache_.commit(id, positions);
    return {};
  }
  const std::vector<SequenceId>& ids() const { return ids_; }

 private:
  Cache& cache_;
  std::vector<SequenceId> ids_;
};

}  // namespace

Result<double> users_rate(Engine& engine, int64_t users, int64_t depth, int64_t tokens) {
  OpenSequences sequences(engine.cache());
  for (int64_t i = 0; i < users; ++i) SLIP_TRY_STATUS(sequences.open(depth));
  const int64_t vocabulary = engine.model().info().vocabulary;
  std::vector<Sampler> samplers(size_t(users), Sampler({.temperature = 0}, vocabulary, vocabulary));
  std::vector<int32_t> next = arbitrary_ids(users, vocabulary);

  StepBatch batch(engine);
  std::optional<Stopwatch> clock;
  for (int64_t step = -kUntimedTokens; step < tokens; ++step) {
    if (step == 0) clock.emplace();
    batch.clear();
    for (size_t i = 0; i < next.size(); ++i)
      batch.add(sequences.ids()[i], {&next[i], 1}, 1, Cache::Rows::certain);
    batch.run();
    for (size_t i = 0; i < next.size(); ++i) {
      next[i] = samplers[i].next(batch.logits(i, 0));
      engine.cache().commit(sequences.ids()[i], 1);
    }
  }
  return double(users * tokens) / clock->seconds();
}

}  // namespace slip
