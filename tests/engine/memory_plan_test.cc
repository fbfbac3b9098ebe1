// One budget, divided before anything is loaded; every refusal says what would fit.
#include "engine/memory_plan.h"

#include "engine/engine.h"
#include "kernels/cpu/cpu_ops.h"
#include "tests/checkpoint/test_files.h"
#include "tests/golden/golden_file.h"

namespace slip {
namespace {

constexpr uint64_t kMb = 1'000'000;

// 100 MB of weights, 10 of activations, 1 of state, 1 MB of keys and values per page (f32).
ModelPlan model_plan() {
  ModelPlan model;
  model.info.max_context = 32768;
  model.weight_bytes = 100 * kMb;
  model.activation_bytes = 10 * kMb;
  model.cache_specs = {
      RecurrentSpec{.key_heads = 1,
                    .value_heads = 1,
                    .key_dim = 500,
                    .value_dim = 500,
                    .conv_tail = 0,
                    .conv_channels = 0},
      PagedKvSpec{.kv_heads = 1, .head_dim = 15625}};  // * 64 * 4 bytes = 4 MB each of K and V
  return model;
}
constexpr uint64_t kPage = 8 * kMb, kFixed = 111 * kMb;

TEST(MemoryPlan, DividesTheBudget) {
  const MemoryPlan plan =
      plan_memory(model_plan(), {.budget = kFixed + 10 * kPage, .context = 640}, 0).value();
  EXPECT_EQ(plan.weights, 100 * kMb);
  EXPECT_EQ(plan.activations, 10 * kMb);
  EXPECT_EQ(plan.state, 1 * kMb);
  EXPECT_EQ(plan.kv, 10 * kPage);
  EXPECT_EQ(plan.context, 640);
  EXPECT_EQ(plan.cache_size().pages, 10);
  EXPECT_EQ(plan.total(), plan.budget);
  for (const char* part : {"100.0 MB", "10.0 MB", "1.0 MB", "80.0 MB", "640 positions", "191.0 MB"})
    EXPECT_THAT(plan.describe(), ::testing::HasSubstr(part));
}

TEST(MemoryPlan, ABudgetTooSmallForTheModelSaysWhatItNeeds) {
  expect_error(plan_memory(model_plan(), {.budget = kFixed + kPage - 1}, 1u << 30),
               {"needs 119.0 MB", "weights 100.0 MB", "the budget allows 119.0 MB"});
  expect_error(plan_memory(model_plan(), {.budget = 50 * kMb}, 1u << 30), {"allows 50.0 MB"});
  expect_error(plan_memory(model_plan(), {}, 600 * kMb), {"the machine has free 63.1 MB"});
  expect_error(plan_memory(model_plan(), {}, 0), {"the machine has free 0.0 MB"});
}

TEST(MemoryPlan, AContextTooLongForTheBudgetSaysWhatFits) {
  expect_error(
      plan_memory(model_plan(), {.budget = kFixed + 10 * kPage + 5, .context = 641}, 1u << 30),
      {"context of 641", "needs 199.0 MB", "allows 191.0 MB", "up to 640 positions"});
}

TEST(MemoryPlan, AContextBeyondTheModelIsRefused) {
  expect_error(plan_memory(model_plan(), {.budget = uint64_t{1} << 40, .context = 32769}, 0),
               {"context of 32769", "32768"});
}

TEST(MemoryPlan, WithoutAContextTakesWhatFitsUpToTheDefault) {
  const auto context = [](uint64_t budget) {
    return plan_memory(model_plan(), {.budget = budget}, 0).value().context;
  };
  EXPECT_EQ(context(kFixed + kPage), 64);
  EXPECT_EQ(context(kFixed + 20 * kPage + 1), 1280);
  EXPECT_EQ(context(uint64_t{1} << 40), 8192);
  ModelPlan small = model_plan();
  small.info.max_context = 1024;
  EXPECT_EQ(plan_memory(small, {.budget = uint64_t{1} << 40}, 0).value().context, 1024);
}

TEST(MemoryPlan, NeverGivesMoreThanTheModelWasMadeFor) {
  ModelPlan odd = model_plan();
  odd.info.max_context = 1000;
  EXPECT_LE(plan_memory(odd, {.budget = uint64_t{1} << 40}, 0).value().context, 1000);
  EXPECT_LE(plan_memory(odd, {.budget = uint64_t{1} << 40, .context = 1000}, 0).value().context,
            1000);
}

TEST(MemoryPlan, HalvesKeysAndValuesInBf16) {
  const MemoryPlan plan = plan_memory(model_plan(),
                                      {.budget = kFixed + 10 * kPage,
                                       .context = 1280,
                                       .kv = KvRecipe{KvCodec::bf16, KvCodec::bf16}},
                                      0)
                              .value();
  EXPECT_EQ(plan.kv, 10 * kPage);
  EXPECT_EQ(plan.total(), plan.budget);
}

TEST(MemoryPlan, ManySequencesShareWhatIsLeft) {
  // Pages for two contexts beside the state of all: what is asked for, then pages.
  const MemoryPlan plan = plan_memory(model_plan(),
                                      {.budget = kFixed + 20 * kPage + 7 * kMb,
                                       .context = 640,
                                       .sequences = 4,
                                       .checkpoints = 4},
                                      0)
                              .value();
  EXPECT_EQ(plan.sequences, 4);
  EXPECT_EQ(plan.checkpoints, 4);
  EXPECT_EQ(plan.state, 8 * kMb);
  EXPECT_EQ(plan.pages, 20);
  EXPECT_EQ(plan.total(), plan.budget);
  EXPECT_EQ(plan.cache_size().sequences, 8);
  for (const char* part :
       {"4 sequences at once", "4 remembered", "1280 positions in all, up to 640 each"})
    EXPECT_THAT(plan.describe(), ::testing::HasSubstr(part));
}

TEST(MemoryPlan, PagesAreNeverMoreThanTheSequencesCanFillOrFewerThanOneNeeds) {
  const auto pages = [](std::optional<int64_t> asked) {
    return plan_memory(
               model_plan(),
               {.budget = uint64_t{1} << 40, .context = 640, .sequences = 3, .pages = asked}, 0)
        .value()
        .pages;
  };
  EXPECT_EQ(pages(std::nullopt), 30);
  EXPECT_EQ(pages(12), 12);
  EXPECT_EQ(pages(2), 10);
}

TEST(MemoryPlan, OneOfManyMayUseThePagesOfAll) {
  const auto plan = [](uint64_t budget, int64_t sequences, int64_t max_context) {
    ModelPlan model = model_plan();
    model.info.max_context = max_context;
    return plan_memory(model, {.budget = budget, .sequences = sequences}, 0).value();
  };
  const uint64_t plenty = uint64_t{1} << 40;
  EXPECT_EQ(plan(plenty, 0, 1 << 20).pages, kMostSequences * pages_for(kDefaultContext));
  EXPECT_EQ(plan(plenty, 0, 1 << 20).context, kMostSequences * kDefaultContext);
  EXPECT_EQ(plan(plenty, 0, 32768).context, 32768);
  EXPECT_EQ(plan(plenty, 3, 1 << 20).context, 3 * kDefaultContext);
  EXPECT_EQ(plan(plenty, 1, 1 << 20).context, kDefaultContext);
  // Of less memory it may use what there is.
  const MemoryPlan scarce = plan(kFixed + kMb + 150 * kPage, 2, 1 << 20);
  EXPECT_EQ(scarce.pages, 150);
  EXPECT_EQ(scarce.context, 150 * kPageLen);
  for (const MemoryPlan& each : {scarce, plan(plenty, 0, 1000), plan(plenty, 5, 32768)})
    EXPECT_LE(pages_for(each.context), each.pages) << "the oldest must be able to end";
}

TEST(MemoryPlan, FewMayShareAsMuchAsMany) {
  constexpr int64_t kShared = kMostSequences * kDefaultContext;
  const auto plan = [](uint64_t budget, int64_t sequences, int64_t max_context) {
    ModelPlan model = model_plan();
    model.info.max_context = max_context;
    return plan_memory(model,
                       {.budget = budget, .sequences = sequences, .shared_positions = kShared}, 0)
        .value();
  };
  const uint64_t plenty = uint64_t{1} << 40;
  for (const int64_t sequences : {1, 2, 32, 0}) {
    EXPECT_EQ(plan(plenty, sequences, 1 << 20).context, kShared) << sequences;
    EXPECT_EQ(plan(plenty, sequences, 1 << 20).pages, pages_for(kShared)) << sequences;
  }
  EXPECT_EQ(plan(plenty, 64, 1 << 20).context, 2 * kShared);
  // No more than the sequences could fill.
  EXPECT_EQ(plan(plenty, 1, 32768).pages, pages_for(32768));
  EXPECT_EQ(plan(plenty, 2, 32768).pages, 2 * pages_for(32768));
  EXPECT_EQ(plan(plenty, 2, 32768).context, 32768);
  // Of less memory, what there is.
  const MemoryPlan scarce = plan(kFixed + 150 * kPage, 1, 1 << 20);
  EXPECT_EQ(scarce.pages, 150);
  EXPECT_EQ(scarce.context, 150 * kPageLen);
  // Who asks for a context gets that.
  const MemoryRequest asked{.budget = plenty, .context = 640, .shared_positions = kShared};
  EXPECT_EQ(plan_memory(model_plan(), asked, 0).value().pages, 10);
}

TEST(MemoryPlan, CheckpointsGiveWayToSequences) {
  const MemoryRequest request{
      .budget = kFixed + 10 * kPage + 3 * kMb, .context = 640, .sequences = 2, .checkpoints = 50};
  const MemoryPlan plan = plan_memory(model_plan(), request, 0).value();
  EXPECT_EQ(plan.sequences, 2);
  EXPECT_EQ(plan.checkpoints, 2);
  MemoryRequest many = request;
  many.sequences = 6;
  expect_error(plan_memory(model_plan(), many, 0), {"6 sequences at once", "allow fewer"});
}

TEST(MemoryPlan, ChoosesHowManySequencesSuitTheMemory) {
  const auto plan = [](uint64_t budget) {
    return plan_memory(model_plan(), {.budget = budget, .context = 1024, .sequences = 0}, 0)
        .value();
  };
  EXPECT_EQ(plan(uint64_t{1} << 40).sequences, kMostSequences);
  EXPECT_EQ(plan(uint64_t{1} << 40).checkpoints, 2 * kMostSequences);
  EXPECT_EQ(plan(kFixed + 16 * kPage).sequences, 1);
  const MemoryPlan some = plan(kFixed + 5 * 16 * kPage);
  EXPECT_EQ(some.sequences, 4);
  EXPECT_LE(some.total(), some.budget);
}

TEST(MemoryPlan, TheMachineHasMemory) { EXPECT_GT(host_memory().free_bytes(), 1u << 20); }

TEST(MemoryPlan, DescribesBytes) {
  EXPECT_EQ(describe_bytes(0), "0.0 MB");
  EXPECT_EQ(describe_bytes(456'700'000), "456.7 MB");
  EXPECT_EQ(describe_bytes(12'340'000'000), "12.34 GB");
}

TEST(MemoryPlan, ForManyIsWhatLoadingTakesToo) {
  ThreadPool pool(2);
  const std::unique_ptr<Ops> ops = make_cpu_ops(pool);
  const ModelSource source = ModelSource::open(minnow_folder()).value();
  EngineOptions options;
  options.max_drafts = 3;
  options.memory.context = 300;
  options.memory.sequences = 5;
  options.memory.checkpoints = 6;
  const MemoryPlan planned = Engine::plan(source, options, *ops).value();
  const std::unique_ptr<Engine> engine = Engine::load(source, options, *ops, pool, {}).value();
  EXPECT_EQ(planned.cache_size().sequences, 11);
  EXPECT_EQ(planned.cache_size().pages, 25);
  EXPECT_EQ(engine->cache().sequences(), 11);
  EXPECT_EQ(engine->cache().pages(), 25);
  EXPECT_GE(engine->logit_rows(), 5 + 3);
}

// What is planned is what is made.
TEST(MemoryPlan, IsWhatLoadingTakes) {
  ThreadPool pool(2);
  const std::unique_ptr<Ops> ops = make_cpu_ops(pool);
  const ModelSource source = ModelSource::open(minnow_folder()).value();
  EngineOptions options;
  options.with_drafter = true;
  options.memory.context = 300;
  const MemoryPlan planned = Engine::plan(source, options, *ops).value();
  const std::unique_ptr<Engine> engine = Engine::load(source, options, *ops, pool, {}).value();
  EXPECT_EQ(engine->model().weight_bytes(), planned.weights);
  EXPECT_GE(engine->context(), 300);
}

}  // namespace
}  // namespace slip
