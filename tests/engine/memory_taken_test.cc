// The plan against what is really taken: every byte that a loaded engine and its drafter
// allocate goes through a memory that counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/draft_passes.h"
#include "engine/sampling.h"
#include "kernels/cpu/cpu_ops_impl.h"
#include "tests/golden/tiny_folder.h"
#include "tests/tensor/counting_memory.h"

namespace slip {
namespace {

class CountingOps : public CpuOps {
 public:
  explicit CountingOps(ThreadPool& pool) : CpuOps(pool, loops_for(available_isas().front(), 2)) {}
  Memory& memory() const override { return memory_; }

 private:
  mutable CountingMemory memory_;
};

struct Case {
  std::string model, drafter;
  int64_t sequences;

  friend std::ostream& operator<<(std::ostream& out, const Case& each) {
    return out << each.model << " for " << each.sequences;
  }
};

class MemoryTaken : public ::testing::TestWithParam<Case> {};

TEST_P(MemoryTaken, IsWhatWasPlanned) {
  const Case& test = GetParam();
  const bool is_tiny = !test.drafter.empty();
  if (is_tiny && (!has_tiny(test.model) || !has_tiny(test.drafter))) GTEST_SKIP() << kTinyAbsent;
  ThreadPool pool(2);
  CountingOps ops(pool);
  const ModelSource source =
      is_tiny ? ModelSource::open(tiny_folder(test.model), tiny_folder(test.drafter)).value()
              : ModelSource::open(minnow_folder()).value();
  EngineOptions options;
  options.max_drafts = 3;
  options.memory.context = 300;
  options.memory.sequences = test.sequences;
  options.memory.checkpoints = 2 * test.sequences;
  const MemoryPlan planned = Engine::plan(source, options, ops).value();
  const std::unique_ptr<Engine> engine = Engine::load(source, options, ops, pool, {}).value();
  const auto& memory = static_cast<const CountingMemory&>(ops.memory());
  uint64_t before = memory.taken();
  {
    const Cache cache(engine->model().cache_specs(), planned.cache_format, planned.cache_size(),
                      ops.memory());
    EXPECT_EQ(memory.taken() - before, planned.state + planned.kv);
  }
  before = memory.taken();
  const DraftPasses passes(*engine);
  // Scratch is in the plan, but a backend's own affair.
  EXPECT_LE(memory.taken(), planned.total());
  EXPECT_GT(memory.taken(), planned.total() * 7 / 8);

  const ModelInfo& info = engine->model().info();
  const DraftPasses::Bytes bytes = DraftPasses::bytes(info, engine->max_rows(), options.max_drafts);
  const auto running = uint64_t(engine->sequences()), all = uint64_t(engine->cache().sequences());
  // A row for a shortlist to be spread over, which these models have not.
  const uint64_t not_here = uint64_t(info.vocabulary) * sizeof(float);
  EXPECT_EQ(memory.taken() - before + not_here,
            bytes.fixed + running * bytes.per_running + all * bytes.per_sequence);
}

TEST(MemoryTaken, EveryRequestMayHaveASampler) {
  ThreadPool pool(2);
  CountingOps ops(pool);
  const ModelSource source = ModelSource::open(minnow_folder()).value();
  const auto activations = [&](int64_t sequences) {
    EngineOptions options;
    options.max_rows = 64;
    options.memory.context = 300;
    options.memory.sequences = sequences;
    return Engine::plan(source, options, ops).value().activations;
  };
  constexpr int64_t kVocabulary = 8192;
  EXPECT_EQ(Sampler::most_bytes(kVocabulary), 17u * kVocabulary);
  EXPECT_EQ(activations(5) - activations(4),
            Logits::bytes(1, kVocabulary) + Sampler::most_bytes(kVocabulary));
  // The one that starts next has a sampler too, and several share rows of logits.
  EXPECT_EQ(activations(2) - activations(1),
            2 * (Logits::bytes(1, kVocabulary) + Sampler::most_bytes(kVocabulary)));
}

TEST(MemoryTaken, LessThanWasPlannedIsAnErrorAndLeavesNothing) {
  ThreadPool pool(2);
  CountingOps ops(pool);
  auto& memory = static_cast<CountingMemory&>(ops.memory());
  const ModelSource source = ModelSource::open(minnow_folder()).value();
  EngineOptions options;
  options.memory.context = 300;
  const MemoryPlan plan = Engine::plan(source, options, ops).value();
  uint64_t most = 0;
  {
    const auto engine = Engine::load(source, options, ops, pool, {}).value();
    most = memory.taken();
  }
  // Too little for the weights, for the cache, for the last buffer.
  for (const uint64_t there : {plan.weights / 2, plan.weights + plan.state / 2, most - 1}) {
    memory.have(there);
    const auto engine = Engine::load(source, options, ops, pool, {});
    ASSERT_FALSE(engine.ok()) << there;
    EXPECT_THAT(engine.failure().message, testing::HasSubstr("memory ran out"));
    EXPECT_STREQ(engine.failure().setting, "memory budget");
    EXPECT_EQ(memory.taken(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MemoryTaken,
                         ::testing::Values(Case{"minnow", "", 1}, Case{"minnow", "", 5},
                                           Case{"gemma4_e", "gemma4_e_assistant", 1},
                                           Case{"gemma4_e", "gemma4_e_assistant", 5}),
                         [](const auto& test) {
                           return test.param.model + "_" + std::to_string(test.param.sequences);
                         });

}  // namespace
}  // namespace slip
