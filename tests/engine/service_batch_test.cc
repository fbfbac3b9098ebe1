// An answer is the same alone and beside others, with drafts and without, whatever is asked for.
#include "tests/engine/service_harness.h"

namespace slip {
namespace {

class ServiceBatch : public ::testing::Test {
 protected:
  // One of many kinds, the same whenever it is asked for.
  Request request(int which) const {
    static const std::vector<std::string> names = prompt_names();
    std::vector<int32_t> prompt = prompt_ids(names[size_t(which) % names.size()]);
    if (prompt.size() > 300) prompt.resize(size_t(300 - which));
    const int64_t tokens = 20 + which * 7 % 40;
    Request made =
        which % 3 == 0 ? greedy(prompt, tokens) : sampled(prompt, tokens, uint64_t(which));
    if (which % 4 == 1) {
      made.sampling.repetition_penalty = 1.2f;
      made.sampling.presence_penalty = 0.3f;
      made.sampling.logit_bias = {{300, 3.0f}, {301, -100.0f}};
    }
    if (which % 5 == 2) made.stop_strings = {" the", "."};
    if (which % 5 == 3) {
      made.stop_ids = {8160, 8161};
      made.min_tokens = 10;
    }
    made.reuse_prefix = false;
    return made;
  }

  struct Heard {
    std::vector<int32_t> ids;
    std::string text;
    FinishReason finish;
    bool operator==(const Heard&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Heard& heard) {
      return out << heard.ids.size() << " tokens, " << name_of(heard.finish) << ": " << heard.text;
    }
  };
  static Heard heard(const Listener& listener) {
    return {listener.ids, listener.text, listener.summary.finish};
  }

  std::vector<Heard> run_alone(const ServiceOptions& options, int count) {
    Service service(model_.engine(), tokenizer_, options);
    std::vector<Heard> all;
    for (int i = 0; i < count; ++i) all.push_back(heard(*answer(service, request(i))));
    EXPECT_TRUE(service.drain(5));
    expect_all_free(service.stats());
    return all;
  }
  std::vector<Heard> run_together(const ServiceOptions& options, int count) {
    Service service(model_.engine(), tokenizer_, options);
    std::vector<Submitted> submitted;
    for (int i = 0; i < count; ++i) submitted.push_back(submit(service, request(i)));
    std::vector<Heard> all;
    for (const Submitted& each : submitted) {
      each.listener->wait();
      EXPECT_EQ(each.listener->finishes, 1);
      all.push_back(heard(*each.listener));
    }
    EXPECT_TRUE(service.drain(5));
    expect_all_free(service.stats());
    stats_ = service.stats();
    return all;
  }

  static constexpr int kRequests = 20;
  LoadedModel model_{
      minnow_folder(), fast_backends().front(), {.context = 512, .max_drafts = 4, .sequences = 16}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
  ServiceStats stats_;
};

TEST_F(ServiceBatch, AnswersAreThoseOfASession) {
  const std::vector<Heard> alone = run_alone({}, kRequests);
  for (int i = 0; i < kRequests; ++i) {
    const Request asked = request(i);
    if (asked.min_tokens > 0) continue;  // a session knows none
    Session session(model_.engine());
    GenerateRequest same;
    same.prompt = asked.prompt;
    same.sampling = asked.sampling;
    same.max_tokens = asked.max_tokens;
    same.stop_ids = asked.stop_ids;
    same.stop_strings = asked.stop_strings;
    const GenerateResult result = generate(session, &tokenizer_, same, {}).value();
    EXPECT_EQ(alone[size_t(i)], (Heard{result.ids, result.text, result.finish})) << i;
  }
}

TEST_F(ServiceBatch, TogetherIsLikeAlone) {
  const std::vector<Heard> alone = run_alone({}, kRequests);
  EXPECT_EQ(run_together({}, kRequests), alone);
  EXPECT_LT(stats_.steps, 40 * kRequests / 4) << "requests share their steps";
}

TEST_F(ServiceBatch, DraftsChangeNothing) {
  const std::vector<Heard> alone = run_alone({}, kRequests);
  EXPECT_EQ(run_alone({.max_drafts = 4, .always_draft = true}, kRequests), alone);
  EXPECT_EQ(run_together({.max_drafts = 4, .always_draft = true}, kRequests), alone);
  EXPECT_GT(stats_.accepted_tokens, 100) << "drafts were made and right";
  EXPECT_EQ(run_together({.max_drafts = 2}, kRequests), alone);
}

TEST_F(ServiceBatch, SmallChunksChangeNothing) {
  const std::vector<Heard> alone = run_alone({}, kRequests);
  EXPECT_EQ(run_together({.chunk_seconds = 1e-6}, kRequests), alone);
}

}  // namespace
}  // namespace slip
