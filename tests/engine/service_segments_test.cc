// Backends whose prompts are computed by other means than decoded tokens, as on GPUs: there the
// bits of a prompt depend on how it is cut into steps. Answers must not depend on the company, on
// what is remembered, or on being stopped, all the same.
#include "tests/engine/cut_sensitive.h"
#include "tests/engine/service_harness.h"

namespace slip {
namespace {

struct Case {
  Backend backend;
  int64_t drafts;

  friend std::ostream& operator<<(std::ostream& out, const Case& each) {
    return out << each.backend << " with " << each.drafts << " drafts";
  }
};

std::vector<Case> cases() {
  std::vector<Case> all = {{cut_sensitive(), 0}, {cut_sensitive(), 3}};
  if (const Backend last = fast_backends().back(); last.name == "cuda") {
    all.push_back({last, 0});
    all.push_back({last, 3});
  }
  return all;
}

class ServiceSegments : public ::testing::TestWithParam<Case> {
 protected:
  ServiceOptions options() const { return {.max_drafts = GetParam().drafts, .always_draft = true}; }
  static std::vector<int32_t> text(size_t length, int32_t start = 700) {
    std::vector<int32_t> ids = prompt_ids("docs_page");
    while (ids.size() < length) ids.push_back(ids[ids.size() / 3]);
    ids.resize(length);
    ids[0] = start;
    return ids;
  }
  // Tokens, and log probabilities, which show every bit.
  struct Heard {
    std::vector<int32_t> ids;
    std::vector<float> logprobs;
    int64_t cached;
  };
  static Heard heard(const Listener& listener) {
    Heard all{listener.ids, {}, listener.summary.cached_tokens};
    for (const TokenEvent& event : listener.events) all.logprobs.push_back(event.logprob);
    return all;
  }
  static Request request(std::vector<int32_t> prompt, std::vector<int64_t> ends, bool reuse) {
    Request made = greedy(std::move(prompt), 40);
    made.message_ends = std::move(ends);
    made.reuse_prefix = reuse;
    made.top_logprobs = 0;
    return made;
  }

  LoadedModel model_{minnow_folder(),
                     GetParam().backend,
                     {.context = 512,
                      .max_rows = 96 - kDraftingSequences * GetParam().drafts,
                      .max_drafts = GetParam().drafts,
                      .sequences = 6,
                      .checkpoints = 12,
                      .pages = 9}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
};

TEST_P(ServiceSegments, CutsMatterHere) {
  if (GetParam().backend.name == "cuda") GTEST_SKIP() << "they may, and need not";
  Service service(model_.engine(), tokenizer_, options());
  const Heard one = heard(*answer(service, request(text(200), {}, false)));
  const Heard other = heard(*answer(service, request(text(200), {70}, false)));
  EXPECT_NE(one.logprobs, other.logprobs) << "or the other tests prove nothing";
}

TEST_P(ServiceSegments, AHitGivesTheAnswerOfAColdRun) {
  Service service(model_.engine(), tokenizer_, options());
  // The conversation that comes first, and how it goes on: as it was cut, and otherwise.
  answer(service, request(text(160), {80, 150}, true));
  const struct {
    size_t length;
    std::vector<int64_t> ends;
    int64_t cached;
  } follow_ups[] = {
      {200, {80, 150}, 150},
      {200, {80, 150, 190}, 192},  // the last two are too close: cut like the one before
      {155, {80, 150}, 150},
      {200, {80}, 96},
      {200, {}, 0},
      {200, {30, 150}, 0}};
  for (const auto& next : follow_ups) {
    const Heard cold = heard(*answer(service, request(text(next.length), next.ends, false)));
    EXPECT_EQ(cold.cached, 0);
    const Heard hit = heard(*answer(service, request(text(next.length), next.ends, true)));
    EXPECT_EQ(hit.cached, next.cached) << next.length << ", " << next.ends.size() << " ends";
    EXPECT_EQ(hit.ids, cold.ids);
    EXPECT_EQ(hit.logprobs, cold.logprobs);
  }
}

TEST_P(ServiceSegments, DecodedTokensAreNotReusedAsAPrompt) {
  Service service(model_.engine(), tokenizer_, options());
  std::vector<int32_t> prompt = text(120);
  const Heard first = heard(*answer(service, request(prompt, {110}, true)));
  prompt.insert(prompt.end(), first.ids.begin(), first.ids.end());
  const Heard second = heard(*answer(service, request(prompt, {110}, true)));
  EXPECT_EQ(second.cached, 110);
  const Heard cold = heard(*answer(service, request(prompt, {110}, false)));
  EXPECT_EQ(second.logprobs, cold.logprobs);
}

TEST_P(ServiceSegments, TogetherAndPreemptedIsLikeAlone) {
  constexpr int kRequests = 9;
  const auto asked = [&](int which) {
    Request made =
        request(text(size_t(60 + 37 * which), 700 + which), {int64_t(30 + 25 * which)}, false);
    made.max_tokens = 90;
    return made;
  };
  std::vector<Heard> alone;
  Service service(model_.engine(), tokenizer_, options());
  for (int i = 0; i < kRequests; ++i) alone.push_back(heard(*answer(service, asked(i))));
  std::vector<Submitted> submitted;
  for (int i = 0; i < kRequests; ++i) submitted.push_back(submit(service, asked(i)));
  for (int i = 0; i < kRequests; ++i) {
    submitted[size_t(i)].listener->wait();
    const Heard together = heard(*submitted[size_t(i)].listener);
    EXPECT_EQ(together.ids, alone[size_t(i)].ids) << i;
    EXPECT_EQ(together.logprobs, alone[size_t(i)].logprobs) << i;
  }
  EXPECT_TRUE(service.drain(5));
  EXPECT_GT(service.stats().preemptions, 0);
  expect_all_free(service.stats());
}

INSTANTIATE_TEST_SUITE_P(All, ServiceSegments, ::testing::ValuesIn(cases()), [](const auto& test) {
  return cat(test.param.backend.name, "_", test.param.drafts);
});

}  // namespace
}  // namespace slip
