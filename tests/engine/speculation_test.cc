// Drafting with minnow's MTP layer: the text is the same with and without, whatever the sampling.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <random>

#include "engine/generate.h"
#include "kernels/cpu/cpu_ops_impl.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

class SpeculationTest : public ::testing::Test {
 protected:
  GenerateRequest request(const std::vector<int32_t>& prompt, int64_t max_tokens) const {
    GenerateRequest made;
    made.prompt = prompt;
    made.sampling.temperature = 0;
    made.max_tokens = max_tokens;
    return made;
  }

  GenerateResult run(Session& session, GenerateRequest made,
                     const std::optional<DraftLength>& drafts) {
    std::optional<SoloDrafting> drafting(drafts);
    made.drafts = drafting ? &*drafting : nullptr;
    Result<GenerateResult> result = generate(session, &tokenizer_, made, {});
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.failure().message);
    return result.ok() ? std::move(result).value() : GenerateResult{};
  }
  GenerateResult run(const GenerateRequest& made, const std::optional<DraftLength>& drafts) {
    Session session(model_.engine());
    return run(session, made, drafts);
  }

  // All ways to draft give the same as none.
  void expect_same(const GenerateRequest& made, const std::string& what) {
    const GenerateResult plain = run(made, std::nullopt);
    EXPECT_EQ(plain.drafts.drafted, 0);
    for (const int64_t drafts : {1, 2, 3, 8}) {
      const GenerateResult drafted = run(made, DraftLength::fixed(drafts));
      EXPECT_EQ(drafted.ids, plain.ids) << what << ", " << drafts << " drafts";
      EXPECT_EQ(drafted.text, plain.text) << what;
      EXPECT_EQ(drafted.finish, plain.finish) << what;
    }
    EXPECT_EQ(run(made, DraftLength::automatic(kMaxDrafts)).ids, plain.ids) << what << ", auto";
  }

  LoadedModel model_{
      minnow_folder(), fast_backends().front(), {.context = 512, .max_drafts = kMaxDrafts}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
};

TEST_F(SpeculationTest, GreedyTextIsTheSame) {
  for (const char* name : {"story", "tool_call", "sum_think", "unicode", "one_token"})
    expect_same(request(prompt_ids(name), 90), name);
}

TEST_F(SpeculationTest, SampledTextIsTheSame) {
  for (const uint64_t seed : {1, 2, 3}) {
    GenerateRequest made = request(prompt_ids("story"), 60);
    made.sampling.seed = seed;
    made.sampling.temperature = 1.0f;
    expect_same(made, "temperature 1");
    made.sampling.temperature = 0.7f;
    made.sampling.top_k = 20;
    made.sampling.top_p = 0.9f;
    expect_same(made, "top k, top p");
    made.sampling.repetition_penalty = 1.3f;
    made.sampling.presence_penalty = 0.5f;
    made.sampling.frequency_penalty = 0.2f;
    made.sampling.logit_bias = {{300, 4.0f}, {301, -100.0f}};
    expect_same(made, "penalties");
  }
}

TEST_F(SpeculationTest, StopsWhereItWouldWithout) {
  const GenerateResult whole = run(request(prompt_ids("story"), 80), std::nullopt);
  for (const size_t begin : {4, 23, 50}) {
    GenerateRequest made = request(prompt_ids("story"), 80);
    made.stop_strings = {whole.text.substr(begin, 5)};
    expect_same(made, "stop string");
    made.stop_strings.clear();
    made.stop_ids = {whole.ids[begin]};
    expect_same(made, "stop id");
  }
  for (int64_t tokens = 0; tokens < 12; ++tokens)
    expect_same(request(prompt_ids("story"), tokens), "max tokens");
}

TEST_F(SpeculationTest, FillsTheContextToItsEnd) {
  std::vector<int32_t> prompt = prompt_ids("docs_page");
  while (int64_t(prompt.size()) < 505) prompt.push_back(prompt[prompt.size() / 2]);
  for (const size_t length : {505, 509, 511}) {
    prompt.resize(length);
    GenerateRequest made = request(prompt, -1);
    expect_same(made, "until the context is full");
    EXPECT_EQ(run(made, DraftLength::fixed(4)).ids.size(), 512 - length + 1);
  }
}

TEST_F(SpeculationTest, FollowsAConversation) {
  Session plain(model_.engine());
  std::vector<int32_t> text = prompt_ids("story");
  std::vector<std::vector<int32_t>> answers;
  for (int turn = 0; turn < 3; ++turn) {
    const GenerateResult result = run(plain, request(text, 40), std::nullopt);
    answers.push_back(result.ids);
    text.insert(text.end(), result.ids.begin(), result.ids.end());
    for (const int32_t id : prompt_ids("one_token")) text.push_back(id);
  }
  plain.clear();
  text = prompt_ids("story");
  SoloDrafting drafting(DraftLength::fixed(3));
  for (int turn = 0; turn < 3; ++turn) {
    GenerateRequest made = request(text, 40);
    made.drafts = &drafting;
    const GenerateResult result = generate(plain, &tokenizer_, made, {}).value();
    EXPECT_EQ(result.ids, answers[size_t(turn)]) << "turn " << turn;
    EXPECT_GT(result.drafts.accepted, 10) << "the drafter lost the thread in turn " << turn;
    EXPECT_GE(result.reused_tokens, turn * 40);
    text.insert(text.end(), result.ids.begin(), result.ids.end());
    for (const int32_t id : prompt_ids("one_token")) text.push_back(id);
  }
}

TEST_F(SpeculationTest, CountsWhatItDrafted) {
  const GenerateResult result = run(request(prompt_ids("story"), 80), DraftLength::fixed(3));
  const DraftCounts& counts = result.drafts;
  EXPECT_GT(counts.accepted, 40) << "minnow's drafts are right most of the time";
  EXPECT_GT(counts.drafted, counts.accepted);
  // Every pass yields its accepted drafts and one token more; the first token came with the prompt.
  EXPECT_GE(counts.steps + counts.accepted, int64_t(result.ids.size()) - 1);
  ASSERT_EQ(counts.judged_at.size(), 3u);
  int64_t accepted = 0;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_LE(counts.accepted_at[i], counts.judged_at[i]);
    EXPECT_LE(counts.judged_at[i], i == 0 ? counts.steps : counts.accepted_at[i - 1]);
    accepted += counts.accepted_at[i];
  }
  EXPECT_EQ(accepted, counts.accepted);
}

// The second token of many answers, given the most common first one, against the distribution
// that the model's own logits give. Drafting must not bend it.
TEST_F(SpeculationTest, SampledTokensFollowTheModelsDistribution) {
  constexpr int kTopK = 8, kSamples = 1500;
  GenerateRequest made = request(prompt_ids("story"), 3);
  made.sampling.temperature = 1.3f;
  made.sampling.top_k = kTopK;

  std::map<int32_t, std::map<int32_t, int>> seconds;
  int64_t drafted = 0;
  Session session(model_.engine());
  for (int seed = 0; seed < kSamples; ++seed) {
    made.sampling.seed = uint64_t(seed) * 7919 + 1;
    const GenerateResult result = run(session, made, DraftLength::fixed(2));
    drafted += result.drafts.drafted;
    ++seconds[result.ids[0]][result.ids[1]];
  }
  EXPECT_GE(drafted, kSamples);
  const auto total = [](const std::map<int32_t, int>& counts) {
    int sum = 0;
    for (const auto& [id, count] : counts) sum += count;
    return sum;
  };
  auto common = seconds.begin();
  for (auto each = seconds.begin(); each != seconds.end(); ++each)
    if (total(each->second) > total(common->second)) common = each;

  std::vector<int32_t> prompt = made.prompt;
  prompt.push_back(common->first);
  session.clear();
  ASSERT_TRUE(session.feed(prompt).ok());
  std::vector<std::pair<float, int32_t>> top;
  for (size_t i = 0; i < session.logits().size(); ++i)
    top.emplace_back(session.logits()[i], int32_t(i));
  std::sort(top.rbegin(), top.rend());
  top.resize(kTopK);
  double mass = 0;
  for (const auto& [logit, id] : top) mass += std::exp(double(logit) / 1.3);

  const int samples = total(common->second);
  double chi_square = 0;
  int seen = 0;
  for (const auto& [logit, id] : top) {
    const double expected = samples * std::exp(double(logit) / 1.3) / mass;
    const int count = common->second.contains(id) ? common->second.at(id) : 0;
    chi_square += (count - expected) * (count - expected) / expected;
    seen += count;
  }
  EXPECT_EQ(seen, samples) << "a token outside the top k was sampled";
  EXPECT_GT(samples, 300);
  // 7 degrees of freedom: 24.3 is exceeded by chance once in a thousand; seeds are fixed.
  EXPECT_LT(chi_square, 24.3) << samples << " samples";
}

std::atomic<int> g_joins{0};  // one per pass of the MTP layer

class JoinCountingOps : public CpuOps {
 public:
  explicit JoinCountingOps(ThreadPool& pool)
      : CpuOps(pool, loops_for(available_isas().front(), 2)) {}
  void join(const JoinArgs& args) override {
    ++g_joins;
    CpuOps::join(args);
  }
};

// The slots of a prompt are computed when the first draft is wanted.
TEST(Speculation, TheFirstTokenDoesNotWaitForDrafts) {
  const Backend counting{"counting", [](ThreadPool& pool) -> std::unique_ptr<Ops> {
                           return std::make_unique<JoinCountingOps>(pool);
                         }};
  LoadedModel model(minnow_folder(), counting, {.context = 512, .max_drafts = 3});
  Session session(model.engine());
  std::vector<int32_t> prompt = prompt_ids("docs_page");
  prompt.resize(150);
  ASSERT_TRUE(session.feed(prompt).ok());
  EXPECT_EQ(g_joins, 0);
  const int32_t next = argmax(session.logits());
  ASSERT_TRUE(session.draft({&next, 1}));
  EXPECT_EQ(g_joins, 2) << "the prompt's, then the draft's";
}

TEST(Speculation, WithoutAnMtpLayerThereAreNoDrafts) {
  const auto folder = golden_folder() / "tiny/qwen3_5_moe_split";
  LoadedModel model(folder, fast_backends().front(), {.context = 128, .max_drafts = 4});
  EXPECT_EQ(model.engine().max_drafts(), 0);
  Session session(model.engine());
  GenerateRequest made;
  made.prompt = GoldenFile(folder / "golden.safetensors").ints("short.ids");
  made.sampling.temperature = 0;
  made.max_tokens = 8;
  SoloDrafting drafting(DraftLength::fixed(2));
  made.drafts = &drafting;
  const GenerateResult result = generate(session, nullptr, made, {}).value();
  EXPECT_EQ(result.ids.size(), 8u);
  EXPECT_EQ(result.drafts.drafted, 0);
}

}  // namespace
}  // namespace slip
