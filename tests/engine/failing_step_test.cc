// A step that throws half way: those who took part hear of it, nobody else does, and nothing of it
// stays.
#include <atomic>
#include <thread>

#include "kernels/cpu/cpu_ops_impl.h"
#include "tests/engine/service_harness.h"

namespace slip {
namespace {

std::atomic<bool> g_fail{false};  // the next attention; make() of a Backend takes no arguments

class FailingOps : public CpuOps {
 public:
  explicit FailingOps(ThreadPool& pool) : CpuOps(pool, loops_for(available_isas().front(), 2)) {}
  void attention(const AttentionArgs& args) override {
    if (g_fail.exchange(false)) throw std::runtime_error("a wire fell out");
    CpuOps::attention(args);
  }
};

Backend failing() {
  return {"failing", [](ThreadPool& pool) -> std::unique_ptr<Ops> {
            return std::make_unique<FailingOps>(pool);
          }};
}

class FailingStep : public ::testing::TestWithParam<int64_t> {
 protected:
  static std::vector<int32_t> text(int32_t start) {
    std::vector<int32_t> ids = prompt_ids("story");
    ids[0] = start;
    return ids;
  }

  LoadedModel model_{minnow_folder(),
                     failing(),
                     {.context = 256, .max_drafts = 3, .sequences = 2, .checkpoints = 4}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
  const ServiceOptions options_{.max_drafts = GetParam(), .always_draft = true};
};

TEST_P(FailingStep, EndsThoseWhoTookPartAndNobodyElse) {
  std::vector<int32_t> alone;
  {
    Service service(model_.engine(), tokenizer_, options_);
    alone = answer(service, greedy(text(703), 30))->ids;
  }
  // Each stops at its tenth token until all have been submitted and the next step is set to fail.
  Service service(model_.engine(), tokenizer_, options_);
  std::atomic<bool> go_on{false};
  std::vector<Submitted> running;
  for (const int32_t start : {701, 702}) {
    auto heard = std::make_shared<int>(0);
    running.push_back(submit(service, greedy(text(start), 100), [&go_on, heard](const auto&) {
      if (++*heard == 10)
        while (!go_on) std::this_thread::yield();
    }));
  }
  const Submitted waiting = submit(service, greedy(text(703), 30));
  // A step in the middle of the answers of both.
  while (service.stats().running < 2) std::this_thread::yield();
  g_fail = true;
  go_on = true;
  for (const Submitted& each : running) {
    each.listener->wait();
    EXPECT_EQ(each.listener->summary.finish, FinishReason::cancelled);
    ASSERT_TRUE(each.listener->summary.failure);
    EXPECT_NE(each.listener->summary.failure->message.find("a step failed: a wire fell out"),
              std::string::npos);
    EXPECT_EQ(each.listener->finishes, 1);
  }
  waiting.listener->wait();
  EXPECT_FALSE(waiting.listener->summary.failure);
  EXPECT_EQ(waiting.listener->ids, alone);
  EXPECT_EQ(answer(service, greedy(text(701), 5))->summary.cached_tokens, 0)
      << "what the failed step may have touched is not remembered";
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
}

INSTANTIATE_TEST_SUITE_P(Drafts, FailingStep, ::testing::Values(0, 3),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace slip
