// What is chosen: constraints, log probabilities, least lengths; and that drafts change none of it.
#include <cmath>

#include "tests/engine/service_harness.h"

namespace slip {
namespace {

// Free for some tokens, then only ids of one remainder, with the end allowed after some of them.
class Remainders : public Constraint {
 public:
  Remainders(int64_t vocabulary, int32_t stop, int64_t free_tokens)
      : vocabulary_(vocabulary), stop_(stop), free_tokens_(free_tokens) {}

  bool allows(int32_t id) override {
    if (free()) return true;
    if (id == stop_) return made_ - free_tokens_ >= kLength;
    return made_ - free_tokens_ < kLength && id % kModulus == (made_ * 7) % kModulus;
  }
  const TokenSet& allowed() override {
    set_ = TokenSet(vocabulary_);
    for (int32_t id = 0; id < vocabulary_; ++id)
      if (allows(id)) set_.add(id);
    return set_;
  }
  bool free() const override { return made_ < free_tokens_; }
  void advance(int32_t id) override {
    EXPECT_TRUE(allows(id)) << id << " after " << made_;
    ++made_;
  }
  std::unique_ptr<Constraint> clone() const override { return std::make_unique<Remainders>(*this); }

  static constexpr int64_t kLength = 25, kModulus = 3;

 private:
  int64_t vocabulary_;
  int32_t stop_;
  int64_t free_tokens_;
  int64_t made_ = 0;
  TokenSet set_;
};

class ServiceChoice : public ::testing::Test {
 protected:
  static constexpr int32_t kStop = 8161;
  Request constrained(bool sample, int64_t free_tokens) const {
    Request request =
        sample ? sampled(prompt_ids("story"), 100, 3) : greedy(prompt_ids("story"), 100);
    request.stop_ids = {kStop};
    request.constraint = std::make_unique<Remainders>(8192, kStop, free_tokens);
    return request;
  }

  LoadedModel model_{minnow_folder(),
                     fast_backends().front(),
                     {.context = 512, .max_drafts = 4, .sequences = 8, .checkpoints = 4}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
};

TEST_F(ServiceChoice, AConstraintIsKeptWithAndWithoutDrafts) {
  for (const bool sample : {false, true}) {
    for (const int64_t free_tokens : {0, 12}) {
      std::vector<int32_t> plain;
      {
        Service service(model_.engine(), tokenizer_, {});
        const auto heard = answer(service, constrained(sample, free_tokens));
        EXPECT_EQ(heard->summary.finish, FinishReason::stop_token);
        ASSERT_EQ(int64_t(heard->ids.size()), free_tokens + Remainders::kLength);
        for (int64_t i = free_tokens; i < int64_t(heard->ids.size()); ++i)
          EXPECT_EQ(heard->ids[size_t(i)] % Remainders::kModulus, (i * 7) % Remainders::kModulus);
        plain = heard->ids;
      }
      Service service(model_.engine(), tokenizer_, {.max_drafts = 4, .always_draft = true});
      std::vector<Submitted> together;
      for (int i = 0; i < 3; ++i) {
        together.push_back(submit(service, constrained(sample, free_tokens)));
        together.push_back(submit(service, sampled(prompt_ids("json"), 30, uint64_t(i))));
      }
      for (size_t i = 0; i < together.size(); i += 2) {
        together[i].listener->wait();
        EXPECT_EQ(together[i].listener->ids, plain) << "sample " << sample;
      }
    }
  }
}

// Gives up after some tokens, as a grammar that is too ambiguous does.
class GivesUp final : public Constraint {
 public:
  explicit GivesUp(int tokens) : left_(tokens) {}
  bool allows(int32_t) override { return true; }
  const TokenSet& allowed() override { return set_; }
  bool free() const override { return true; }
  void advance(int32_t) override { --left_; }
  const Error* failure() const override { return left_ < 0 ? &failure_ : nullptr; }
  std::unique_ptr<Constraint> clone() const override { return std::make_unique<GivesUp>(*this); }

 private:
  int left_;
  TokenSet set_;
  Error failure_ = error("too many ways");
};

TEST_F(ServiceChoice, AConstraintThatGivesUpEndsItsAnswerWithTheReason) {
  for (const bool always_draft : {false, true}) {
    Service service(model_.engine(), tokenizer_, {.max_drafts = 4, .always_draft = always_draft});
    Request request = greedy(prompt_ids("story"), 8);
    request.constraint = std::make_unique<GivesUp>(7);  // at the last token, too
    const Submitted given_up = submit(service, std::move(request));
    const Submitted other = submit(service, greedy(prompt_ids("json"), 30));
    given_up.listener->wait();
    other.listener->wait();
    EXPECT_EQ(given_up.listener->summary.finish, FinishReason::cancelled);
    ASSERT_TRUE(given_up.listener->summary.failure);
    EXPECT_EQ(given_up.listener->summary.failure->message, "too many ways");
    EXPECT_EQ(given_up.listener->ids.size(), 7u);
    EXPECT_EQ(other.listener->summary.finish, FinishReason::max_tokens);
  }
}

TEST_F(ServiceChoice, AStopTokenThatIsAllThatIsLeftEndsAShortAnswer) {
  Service service(model_.engine(), tokenizer_, {});
  Request request = constrained(false, 0);
  request.min_tokens = 60;
  const auto heard = answer(service, std::move(request));
  EXPECT_EQ(heard->summary.finish, FinishReason::stop_token);
  EXPECT_EQ(int64_t(heard->ids.size()), Remainders::kLength);
}

TEST_F(ServiceChoice, NoStopTokenBeforeTheLeastLength) {
  Service service(model_.engine(), tokenizer_, {});
  const auto whole = answer(service, greedy(prompt_ids("story"), 40));
  Request request = greedy(prompt_ids("story"), 40);
  request.stop_ids = {whole->ids[5]};
  const auto stopped = answer(service, std::move(request));
  EXPECT_EQ(stopped->summary.finish, FinishReason::stop_token);
  EXPECT_LE(stopped->ids.size(), 5u);
  request = greedy(prompt_ids("story"), 40);
  request.stop_ids = {whole->ids[5]};
  request.min_tokens = 20;
  const auto longer = answer(service, std::move(request));
  EXPECT_GE(longer->ids.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_NE(longer->ids[i], whole->ids[5]);
}

TEST_F(ServiceChoice, LogProbabilitiesAreTheModelsOwn) {
  std::vector<float> logprobs;
  for (const int64_t drafts : {0, 4}) {
    Service service(model_.engine(), tokenizer_, {.max_drafts = drafts, .always_draft = true});
    Request request = sampled(prompt_ids("story"), 30, 9);
    request.sampling.repetition_penalty = 1.3f;
    request.top_logprobs = 5;
    const auto heard = answer(service, std::move(request));

    // The same from the logits of the text, all at once.
    std::vector<int32_t> text = prompt_ids("story");
    const size_t before = text.size();
    text.insert(text.end(), heard->ids.begin(), heard->ids.end());
    std::vector<float> seen;
    {
      const LogitRows rows = LoadedModel(minnow_folder(), fast_backends().front()).logits(text);
      for (size_t i = 0; i < heard->events.size(); ++i) {
        const std::span<const float> logits = rows.row(int64_t(before + i) - 1);
        const double log_sum = log_sum_exp(logits);
        const TokenEvent& event = heard->events[i];
        EXPECT_NEAR(event.logprob, double(logits[size_t(event.id)]) - log_sum, 1e-5);
        ASSERT_EQ(event.top.size(), 5u);
        EXPECT_EQ(event.top[0].id, argmax(logits));
        for (size_t n = 1; n < 5; ++n) EXPECT_LE(event.top[n].logprob, event.top[n - 1].logprob);
        seen.push_back(event.logprob);
      }
    }
    if (logprobs.empty()) logprobs = seen;
    EXPECT_EQ(seen, logprobs) << "bit for bit with drafts";
  }
}

TEST_F(ServiceChoice, DraftsAreAsGoodAsASessions) {
  for (const char* name : {"story", "json", "sum_think"}) {
    int64_t accepted = 0;
    {
      Session session(model_.engine());
      GenerateRequest same;
      same.prompt = prompt_ids(name);
      same.sampling.temperature = 0;
      same.max_tokens = 80;
      SoloDrafting drafting(DraftLength::fixed(4));
      same.drafts = &drafting;
      accepted = generate(session, &tokenizer_, same, {}).value().drafts.accepted;
    }
    Service service(model_.engine(), tokenizer_, {.max_drafts = 4, .always_draft = true});
    const auto heard = answer(service, greedy(prompt_ids(name), 80));
    EXPECT_NEAR(double(heard->summary.drafts.accepted), double(accepted), 1.0) << name;
    // And in company.
    std::vector<Submitted> together;
    for (int i = 0; i < 4; ++i) together.push_back(submit(service, greedy(prompt_ids(name), 80)));
    for (const Submitted& each : together) {
      each.listener->wait();
      EXPECT_NEAR(double(each.listener->summary.drafts.accepted), double(accepted), 1.0) << name;
    }
  }
}

TEST_F(ServiceChoice, TimesAndCountsAddUp) {
  Service service(model_.engine(), tokenizer_, {.max_drafts = 4});
  const auto heard = answer(service, greedy(prompt_ids("docs_page"), 20));
  const RequestSummary& summary = heard->summary;
  EXPECT_EQ(summary.tokens, 20);
  EXPECT_EQ(summary.prompt_tokens, int64_t(prompt_ids("docs_page").size()));
  EXPECT_GT(summary.prompt_seconds, 0);
  EXPECT_GT(summary.decode_seconds, 0);
  EXPECT_GE(summary.queue_seconds, 0);
  EXPECT_EQ(heard->prompt_steps.back(), summary.prompt_tokens);
  EXPECT_TRUE(service.drain(5));
  const ServiceStats stats = service.stats();
  EXPECT_EQ(stats.generated_tokens, 20);
  EXPECT_EQ(stats.prompt_tokens, summary.prompt_tokens);
  EXPECT_EQ(stats.draft_tokens, summary.drafts.drafted);
  EXPECT_EQ(stats.accepted_tokens, summary.drafts.accepted);
}

}  // namespace
}  // namespace slip
