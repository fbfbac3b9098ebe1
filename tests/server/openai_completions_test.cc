// /v1/completions.
#include <gmock/gmock.h>

#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using ::testing::HasSubstr;

class OpenAiCompletions : public ApiTest {
 protected:
  std::shared_ptr<RecordedReply> complete(const std::string& members) {
    return post("/v1/completions", "{" + members + "}");
  }
};

TEST_F(OpenAiCompletions, TakesPromptsOfAllKinds) {
  complete(R"("prompt":"Once")");
  EXPECT_EQ(prompt_text(), "Once");
  EXPECT_EQ(asked().max_tokens, 16);
  complete(R"("prompt":[5,6,7],"max_tokens":3)");
  EXPECT_EQ(asked().prompt, (std::vector<int32_t>{5, 6, 7}));
  const auto reply = complete(R"("prompt":["a","b"],"n":2,"echo":true,"seed":5)");
  // The first of each prompt, then the others.
  for (size_t i = 2; i < 6; ++i) engine_.answer(i, {std::to_string(i)});
  ASSERT_EQ(engine_.taken.size(), 6u);
  const JsonObject body = reply->json();
  EXPECT_EQ(body.at("object"), "text_completion");
  EXPECT_EQ(body.at("choices").at(0).at("text"), "a2");
  EXPECT_EQ(body.at("choices").at(1).at("text"), "a4");
  EXPECT_EQ(body.at("choices").at(3).at("text"), "b5");
  EXPECT_EQ(body.at("usage").at("prompt_tokens").to_number<int>(), 2);  // each prompt once
  complete(R"("prompt":[[5],[6]])");
  EXPECT_EQ(engine_.taken.size(), 8u);
}

TEST_F(OpenAiCompletions, StreamsText) {
  const auto reply = complete(
      R"("prompt":"Once","stream":true,"echo":true,"stream_options":{"include_usage":true})");
  engine_.answer(0, {" upon", " <think>"}, FinishReason::max_tokens);
  const std::string head =
      R"(data: {"id":"cmpl-ID","object":"text_completion","created":T,"model":"minnow","choices":[)";
  const auto chunk = [&](const char* text, const char* finish) {
    return head + R"({"index":0,"text":")" + text + R"(","logprobs":null,"finish_reason":)" +
           finish + "}]}\n\n";
  };
  EXPECT_THAT(steady(reply->body()),
              ::testing::StartsWith(chunk("Once", "null") + chunk(" upon", "null") +
                                    chunk(" <think>", "null") + chunk("", "\"length\"") + head +
                                    R"(],"usage":)"));
  EXPECT_THAT(reply->body(), ::testing::EndsWith("data: [DONE]\n\n"));
}

TEST_F(OpenAiCompletions, GivesLogprobsInTheOlderShape) {
  const auto reply = complete(R"("prompt":"Once","logprobs":2)");
  engine_.answer(0, {"Hi", "Hi"});
  const Json logprobs = reply->json().at("choices").at(0).at("logprobs");
  EXPECT_EQ(logprobs.at("tokens").get_array().size(), 2u);
  EXPECT_EQ(logprobs.at("token_logprobs").at(0).to_number<double>(), -0.5);
  EXPECT_EQ(logprobs.at("top_logprobs").at(0).get_object().size(), 2u);
  EXPECT_EQ(logprobs.at("text_offset").at(0).to_number<int>(), 0);
  EXPECT_GT(logprobs.at("text_offset").at(1).to_number<int>(), 0);
}

TEST_F(OpenAiCompletions, OffsetsCountCharacters) {
  const std::vector<int32_t> ids = tokenizer().encode("é😀é");
  ASSERT_EQ(ids.size(), 8u) << "each of its bytes is a token";
  const std::string choose = R"("prompt":"Once","logprobs":0)";
  const auto whole = complete(choose), stream = complete(choose + R"(,"stream":true)");
  for (size_t i = 0; i < 2; ++i) {
    for (const int32_t id : ids) {
      TokenEvent event;
      event.id = id;
      engine_.taken[i].listener->on_token(event);
    }
    engine_.end(i, int64_t(ids.size()), FinishReason::stop_token);
  }
  EXPECT_THAT(whole->body(), HasSubstr(R"("text_offset": [0, 0, 1, 1, 1, 1, 2, 2])"));
  std::string streamed;
  const std::regex offset(R"("text_offset": \[(\d)\])");
  const std::string body = stream->body();
  for (std::sregex_iterator at(body.begin(), body.end(), offset), end; at != end; ++at)
    streamed += (*at)[1];
  EXPECT_EQ(streamed, "00111122");
}

TEST_F(OpenAiCompletions, TellsHowLongAPromptMayBe) {
  engine_.context_length = 10;
  const JsonObject error = complete(R"("prompt":"Once")")->json().at("error").get_object();
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
  EXPECT_EQ(error.at("param"), "prompt");
}

TEST_F(OpenAiCompletions, RefusesWhatItCannotDo) {
  const std::pair<const char*, const char*> table[] = {
      {R"("model":"minnow")", "prompt"},
      {R"("prompt":"")", "prompt"},
      {R"("prompt":[])", "prompt"},
      {R"("prompt":[[]])", "prompt"},
      {R"("prompt":{"a":1})", "prompt"},
      {R"("prompt":[1,"a"])", "prompt"},
      {R"("prompt":[99999999])", "prompt"},
      {R"("prompt":"a","echo":true,"logprobs":1)", "echo"},
      {R"("prompt":"a","best_of":4)", "best_of"},
      {R"("prompt":"a","suffix":"b")", "suffix"},
      {R"("prompt":"a","max_tokens":0)", "max_tokens"},
      {R"("prompt":"a","guided_regex":"(")", "guided_regex"},
  };
  for (const auto& [members, param] : table) {
    const auto reply = complete(members);
    EXPECT_EQ(reply->status(), 400) << members;
    EXPECT_EQ(reply->json().at("error").at("param"), param) << members << " " << reply->body();
  }
}

}  // namespace
}  // namespace slip
