// A decode step allocates nothing: this program counts every call of malloc and its relatives
// (operator new ends there too). Buffers come from mmap; NoAllocScope guards those in each step.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "engine/decoder.h"
#include "engine/scheduler.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define SLIP_COUNTS_ALLOCATIONS 0  // they have a malloc of their own
#else
#define SLIP_COUNTS_ALLOCATIONS 1
#endif

namespace {
std::atomic<int64_t> g_allocations{0};
}  // namespace

#if SLIP_COUNTS_ALLOCATIONS
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
}
#endif

namespace slip {
namespace {

class NoAllocation : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (!SLIP_COUNTS_ALLOCATIONS)
      GTEST_SKIP() << "NOT TESTED: this build's malloc cannot be counted";
  }
};

int64_t allocations() { return g_allocations.load(); }

TEST(AllocationCount, SeesNewAndMalloc) {
  if (!SLIP_COUNTS_ALLOCATIONS) GTEST_SKIP() << "NOT TESTED: this build's malloc cannot be counted";
  const int64_t before = allocations();
  delete new int(1);
  std::free(std::malloc(10));
  const std::vector<int> vector(10);
  EXPECT_GE(allocations() - before, 2);
}

TEST_P(NoAllocation, InFeedingOneTokenAndSamplingTheNext) {
  LoadedModel model(minnow_folder(), GetParam(), {.context = 256, .max_rows = 32});
  Session session(model.engine());
  ASSERT_TRUE(session.feed(prompt_ids("story")).ok());
  for (const float temperature : {0.0f, 0.8f}) {
    SamplingOptions options{.temperature = temperature, .top_p = 0.9f, .repetition_penalty = 1.1f};
    options.frequency_penalty = 0.1f;
    options.top_k = temperature > 0 ? 20 : 0;
    Sampler sampler(options, 8192, 8174);
    sampler.see_prompt(prompt_ids("story"));
    int32_t id = sampler.next(session.logits());
    ASSERT_TRUE(session.feed({&id, 1}).ok());
    // 80 tokens: past the end of a page, twice.
    int64_t in_feed = 0, in_next = 0;
    for (int i = 0; i < 80; ++i) {
      const int64_t start = allocations();
      id = sampler.next(session.logits());
      const int64_t chosen = allocations();
      const bool fed = session.feed({&id, 1}).ok();
      in_next += chosen - start;
      in_feed += allocations() - chosen;
      ASSERT_TRUE(fed);
    }
    EXPECT_EQ(in_feed, 0) << "in 80 steps, temperature " << temperature;
    EXPECT_EQ(in_next, 0) << "in 80 choices, temperature " << temperature;
  }
}

TEST_P(NoAllocation, InFeedingAWholePrompt) {
  LoadedModel model(minnow_folder(), GetParam(), {.context = 512, .max_rows = 32});
  Session session(model.engine());
  const std::vector<int32_t> ids = prompt_ids("docs_page");
  ASSERT_TRUE(session.feed(std::span(ids).first(40)).ok());
  const int64_t before = allocations();
  const bool fed = session.feed(std::span(ids).subspan(40)).ok();
  EXPECT_EQ(allocations() - before, 0);
  EXPECT_TRUE(fed);
}

// Drafting, verifying and taking back what was wrong.
TEST_P(NoAllocation, InDecodingWithDrafts) {
  LoadedModel model(minnow_folder(), GetParam(), {.context = 512, .max_drafts = 4});
  Session session(model.engine());
  ASSERT_TRUE(session.feed(prompt_ids("story")).ok());
  Sampler sampler({.temperature = 0}, 8192, 8174);
  SoloDrafting drafting(DraftLength::fixed(4));
  Decoder decoder(session, sampler, &drafting);
  bool advanced = true;
  const int64_t before = allocations();
  for (int i = 0; i < 150; ++i)
    advanced &= decoder.advance(sampler.next(decoder.logits()), 1000).ok();
  EXPECT_EQ(allocations() - before, 0) << "in 150 tokens";
  EXPECT_TRUE(advanced);
  decoder.finish();
  EXPECT_GT(decoder.counts().accepted, 20);
  EXPECT_LT(decoder.counts().accepted, decoder.counts().drafted);
}

class Deaf : public RequestListener {
 public:
  void on_token(const TokenEvent&) override {}
  void on_finish(const RequestSummary&) override {}
};

// Requests grow by what they are told to remember: their tokens, and now and then a long word.
TEST_P(NoAllocation, InMostStepsOfManyRequests) {
  constexpr int kSteps = 60;
  LoadedModel model(minnow_folder(), GetParam(), {.context = 512, .max_drafts = 3, .sequences = 4});
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  Scheduler scheduler(model.engine(), tokenizer, {.max_drafts = 3, .always_draft = true});
  for (uint64_t i = 0; i < 4; ++i) {
    Request request;
    request.prompt = prompt_ids("story");
    request.sampling = {.temperature = 0.8f, .top_k = 20, .seed = i};
    auto job = std::make_unique<Job>(std::move(request), std::make_shared<Deaf>(),
                                     Scheduler::segment_of(model.engine()));
    job->id = RequestId{i};
    job->tokens.reserve(1024);
    scheduler.add(std::move(job));
  }
  for (int i = 0; i < 10; ++i) scheduler.step();
  const int64_t before = allocations();
  for (int i = 0; i < kSteps; ++i) scheduler.step();
  EXPECT_LT(allocations() - before, kSteps / 4);
  EXPECT_EQ(scheduler.stats().running, 4);
}

INSTANTIATE_TEST_SUITE_P(Backends, NoAllocation, ::testing::ValuesIn(cpu_backends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace slip
