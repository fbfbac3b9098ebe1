// Whole requests on minnow: where they end, what comes out, and that text is whole characters.
#include "engine/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

using ::testing::HasSubstr;

class GenerateTest : public ::testing::Test {
 protected:
  GenerateRequest greedy_request(int64_t max_tokens) const {
    GenerateRequest request;
    request.prompt = prompt_ids("story");
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    return request;
  }

  GenerateResult run(const GenerateRequest& request, const GenerateEvents& events = {}) {
    Session session(model_.engine());
    Result<GenerateResult> result = generate(session, &tokenizer_, request, events);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.failure().message);
    return result.ok() ? std::move(result).value() : GenerateResult{};
  }

  LoadedModel model_{minnow_folder(), fast_backends().front(), {.context = 192}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
};

TEST_F(GenerateTest, StopsAtMaxTokens) {
  const GenerateResult result = run(greedy_request(12));
  EXPECT_EQ(result.finish, FinishReason::max_tokens);
  EXPECT_EQ(result.ids.size(), 12u);
  EXPECT_EQ(result.ids, model_.greedy(prompt_ids("story"), 12));
  EXPECT_EQ(result.text, tokenizer_.decode(result.ids));
  EXPECT_EQ(result.prompt_tokens, 23);
  EXPECT_EQ(result.reused_tokens, 0);
  EXPECT_GT(result.decode_rate(), 0);
  EXPECT_GT(result.prompt_rate(), 0);
  EXPECT_TRUE(run(greedy_request(0)).ids.empty());
}

TEST_F(GenerateTest, StopIdsEndTheAnswerAndAreNotPartOfIt) {
  const std::vector<int32_t> whole = run(greedy_request(12)).ids;
  GenerateRequest request = greedy_request(12);
  request.stop_ids = {whole[7]};
  const size_t first = size_t(std::find(whole.begin(), whole.end(), whole[7]) - whole.begin());
  const GenerateResult result = run(request);
  EXPECT_EQ(result.finish, FinishReason::stop_token);
  EXPECT_EQ(result.ids, std::vector<int32_t>(whole.begin(), whole.begin() + int64_t(first)));
}

TEST_F(GenerateTest, StopStringsEndTheTextBeforeThem) {
  const std::string whole = run(greedy_request(40)).text;
  ASSERT_GT(whole.size(), 40u);
  for (const size_t begin : {5, 17, 30}) {
    GenerateRequest request = greedy_request(60);
    request.stop_strings = {whole.substr(begin, 6), "never in a story"};
    std::string streamed;
    const GenerateResult result = run(request, {.on_text =
                                                    [&](std::string_view text) {
                                                      streamed += text;
                                                      return true;
                                                    },
                                                .on_prompt = {}});
    EXPECT_EQ(result.finish, FinishReason::stop_string);
    EXPECT_EQ(result.text, whole.substr(0, whole.find(whole.substr(begin, 6))));
    EXPECT_EQ(streamed, result.text);
  }
}

TEST_F(GenerateTest, HeldBackTextComesAtTheEnd) {
  const std::string whole = run(greedy_request(20)).text;
  GenerateRequest request = greedy_request(20);
  request.stop_strings = {whole.substr(whole.size() - 4) + "\x01 never"};
  EXPECT_EQ(run(request).text, whole);
}

TEST_F(GenerateTest, AFalseFromTheReaderStopsIt) {
  int calls = 0;
  const GenerateResult result =
      run(greedy_request(50),
          {.on_text = [&](std::string_view) { return ++calls < 3; }, .on_prompt = {}});
  EXPECT_EQ(result.finish, FinishReason::cancelled);
  EXPECT_EQ(calls, 3) << "nobody is called after having said no";
  EXPECT_LT(result.ids.size(), 10u);
}

TEST_F(GenerateTest, AFullContextEndsTheAnswer) {
  const GenerateResult result = run(greedy_request(-1));
  EXPECT_EQ(result.finish, FinishReason::context_full);
  EXPECT_EQ(result.ids.size(), 192u - 23 + 1) << "the last token is chosen, not fed";
}

TEST_F(GenerateTest, FollowUpsReuseTheSession) {
  const GenerateRequest first = greedy_request(8);
  GenerateRequest second = first;
  GenerateResult reused;
  {
    Session session(model_.engine());
    const GenerateResult answer = generate(session, &tokenizer_, first, {}).value();
    second.prompt.insert(second.prompt.end(), answer.ids.begin(), answer.ids.end());
    second.prompt.push_back(300);
    reused = generate(session, &tokenizer_, second, {}).value();
  }
  EXPECT_EQ(reused.reused_tokens, int64_t(second.prompt.size()) - 2)
      << "all but the last token of the answer, which was chosen and not fed, and the new one";
  EXPECT_EQ(reused.ids, run(second).ids) << "as from an empty session";
}

TEST_F(GenerateTest, TheSeedDecidesASample) {
  GenerateRequest request = greedy_request(24);
  request.sampling = {.temperature = 1.2f, .seed = 5};
  const std::vector<int32_t> ids = run(request).ids;
  EXPECT_EQ(run(request).ids, ids);
  request.sampling.seed = 6;
  EXPECT_NE(run(request).ids, ids);
}

TEST_F(GenerateTest, NeverChoosesIdsWithoutAToken) {
  GenerateRequest request = greedy_request(150);
  request.sampling = {.temperature = 50.0f, .seed = 11};  // nearly uniform
  for (const int32_t id : run(request).ids) EXPECT_LT(id, tokenizer_.vocab_size());
}

TEST_F(GenerateTest, TextComesInWholeCharacters) {
  GenerateRequest request = greedy_request(150);
  request.sampling = {.temperature = 50.0f, .seed = 12};  // many broken characters
  std::string streamed;
  const GenerateResult result = run(request, {.on_text =
                                                  [&](std::string_view text) {
                                                    EXPECT_FALSE(text.empty());
                                                    EXPECT_NE(uint8_t(text.front()) & 0xc0, 0x80)
                                                        << "starts inside a character";
                                                    streamed += text;
                                                    return true;
                                                  },
                                              .on_prompt = {}});
  EXPECT_EQ(streamed, result.text);
  EXPECT_EQ(result.text, tokenizer_.decode(result.ids));
}

TEST_F(GenerateTest, RefusesWhatItCannotDo) {
  Session session(model_.engine());
  const auto message = [&](const Tokenizer* tokenizer, const GenerateRequest& request) {
    const Result<GenerateResult> result = generate(session, tokenizer, request, {});
    return result.ok() ? "" : result.failure().message;
  };
  EXPECT_THAT(message(&tokenizer_, {}), HasSubstr("prompt is empty"));
  GenerateRequest request = greedy_request(4);
  request.stop_strings = {"x"};
  EXPECT_THAT(message(nullptr, request), HasSubstr("stop strings need a tokenizer"));
  request = greedy_request(4);
  request.prompt.assign(193, 5);
  EXPECT_THAT(message(&tokenizer_, request), HasSubstr("193 tokens"));
}

TEST_F(GenerateTest, WithoutATokenizerThereAreIdsOnly) {
  Session session(model_.engine());
  const GenerateResult result = generate(session, nullptr, greedy_request(6), {}).value();
  EXPECT_EQ(result.ids.size(), 6u);
  EXPECT_EQ(result.text, "");
}

}  // namespace
}  // namespace slip
