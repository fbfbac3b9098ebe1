// What was computed before is not computed again, and nobody can tell but by the time it takes.
#include "tests/engine/service_harness.h"

namespace slip {
namespace {

struct Case {
  std::string recipe;
  int64_t drafts;

  friend std::ostream& operator<<(std::ostream& out, const Case& each) {
    return out << each.recipe << " with " << each.drafts << " drafts";
  }
};

std::vector<int32_t> long_text(size_t length) {
  std::vector<int32_t> ids = prompt_ids("docs_page");
  for (const char* name : {"story", "json", "unicode"})
    for (const int32_t id : prompt_ids(name)) ids.push_back(id);
  while (ids.size() < length) ids.push_back(ids[ids.size() / 3]);
  ids.resize(length);
  return ids;
}

class ServicePrefix : public ::testing::TestWithParam<Case> {
 protected:
  ServiceOptions options() const { return {.max_drafts = GetParam().drafts, .always_draft = true}; }
  LoadedModel model_{minnow_folder(),
                     fast_backends().front(),
                     {.context = 1024,
                      .max_drafts = GetParam().drafts,
                      .kv = parse_kv_recipe(GetParam().recipe).value(),
                      .sequences = 3,
                      .checkpoints = 12}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
};

// Lengths on both sides of a page's end, and cuts there and elsewhere.
TEST_P(ServicePrefix, AHitGivesTheAnswerOfAColdRun) {
  Service service(model_.engine(), tokenizer_, options());
  for (const int64_t shared : {3, 63, 64, 65, 128, 200, 321}) {
    for (const int64_t more : {1, 2, 63, 70}) {
      const std::vector<int32_t> text = long_text(size_t(shared + more));
      const auto asked = [&](bool reuse) {
        Request request = sampled(text, 24, uint64_t(shared * 100 + more));
        request.message_ends = {shared};
        request.reuse_prefix = reuse;
        request.salt = cat(shared);
        return request;
      };
      const auto cold = answer(service, asked(false));
      EXPECT_EQ(cold->summary.cached_tokens, 0);
      const auto first = answer(service, asked(true));
      EXPECT_EQ(first->summary.cached_tokens, more == 1 ? 0 : shared) << "of the one before";
      const auto hit = answer(service, asked(true));
      EXPECT_GE(hit->summary.cached_tokens, shared);
      EXPECT_LT(hit->summary.cached_tokens, shared + more);
      for (const auto& each : {first, hit}) {
        EXPECT_EQ(each->ids, cold->ids) << shared << " + " << more;
        EXPECT_EQ(each->text, cold->text);
        // The drafting layer has its memory back as well.
        EXPECT_EQ(each->summary.drafts.accepted, cold->summary.drafts.accepted)
            << shared << " + " << more;
      }
    }
  }
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
  EXPECT_GT(service.stats().cached_prompt_tokens, 1000);
}

TEST_P(ServicePrefix, AConversationGoesOnWhereItsAnswerEnded) {
  Service service(model_.engine(), tokenizer_, options());
  const auto talk = [&](bool reuse) {
    std::vector<std::vector<int32_t>> answers;
    std::vector<int32_t> text = long_text(150);
    int64_t cached = 0;
    for (int turn = 0; turn < 4; ++turn) {
      Request request = greedy(text, 30);
      request.message_ends = {int64_t(text.size()) - 5};
      request.reuse_prefix = reuse;
      const auto heard = answer(service, std::move(request));
      if (reuse && turn > 0) {
        EXPECT_EQ(heard->summary.cached_tokens, cached) << "all but the answer's last token";
      }
      answers.push_back(heard->ids);
      text.insert(text.end(), heard->ids.begin(), heard->ids.end());
      cached = int64_t(text.size()) - 1;
      for (const int32_t id : prompt_ids("one_token")) text.push_back(id);
    }
    return answers;
  };
  EXPECT_EQ(talk(true), talk(false));
}

INSTANTIATE_TEST_SUITE_P(All, ServicePrefix,
                         ::testing::Values(Case{"f32", 0}, Case{"f32", 3}, Case{"bf16", 0},
                                           Case{"bf16", 3}, Case{"k4v4", 0}, Case{"k4v4", 3}),
                         [](const auto& test) {
                           return cat(test.param.recipe, "_", test.param.drafts);
                         });

class ServiceSharing : public ::testing::Test {
 protected:
  LoadedModel model_{
      minnow_folder(), fast_backends().front(), {.context = 512, .sequences = 2, .checkpoints = 3}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
};

TEST_F(ServiceSharing, NothingIsSharedAcrossSalts) {
  Service service(model_.engine(), tokenizer_, {});
  const auto cached = [&](const std::string& salt) {
    Request request = greedy(long_text(200), 4);
    request.message_ends = {190};
    request.salt = salt;
    return answer(service, std::move(request))->summary.cached_tokens;
  };
  EXPECT_EQ(cached("a"), 0);
  EXPECT_EQ(cached("b"), 0);
  EXPECT_EQ(cached("a"), 190);
  EXPECT_EQ(cached("b"), 190);
  EXPECT_EQ(cached(""), 0);
}

TEST_F(ServiceSharing, TheOldestIsForgottenWhenSlotsRunOut) {
  Service service(model_.engine(), tokenizer_, {});
  const auto cached = [&](int32_t start) {
    std::vector<int32_t> text = long_text(100);
    text[0] = start;
    Request request = greedy(text, 2);
    request.message_ends = {90};
    return answer(service, std::move(request))->summary.cached_tokens;
  };
  // Two states per request are remembered, five fit.
  EXPECT_EQ(cached(1000), 0);
  EXPECT_EQ(cached(1000), 90);
  for (int32_t start = 1001; start < 1004; ++start) EXPECT_EQ(cached(start), 0);
  EXPECT_EQ(cached(1003), 90);
  EXPECT_EQ(cached(1000), 0);
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
  EXPECT_GT(service.stats().remembered_pages, 0);
}

TEST_F(ServiceSharing, PagesThatAreRememberedGiveWay) {
  Service service(model_.engine(), tokenizer_, {});
  Request first = greedy(long_text(300), 2), second = greedy(long_text(500), 8);
  second.prompt[0] = 1234;
  second.reuse_prefix = false;
  const auto expected = answer(service, std::move(second))->ids;
  answer(service, std::move(first));
  Request both[2];
  for (Request& request : both) {
    request = greedy(long_text(500), 8);
    request.prompt[0] = 1234;
  }
  const Submitted a = submit(service, std::move(both[0])), b = submit(service, std::move(both[1]));
  a.listener->wait();
  b.listener->wait();
  EXPECT_EQ(a.listener->ids, expected);
  EXPECT_EQ(b.listener->ids, expected);
}

}  // namespace
}  // namespace slip
