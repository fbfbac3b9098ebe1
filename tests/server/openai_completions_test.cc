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
  EXPECT_THAT(whole->body(), HasSubstr(R"("text_offset":[0,0,1,1,1,1,2,2])"));
  std::string streamed;
  const std::regex offset(R"("text_offset":\[(\d)\])");
  const std::string body = stream->body();
  for (std::sregex_iterator at(body.begin(), body.end(), offset), end; at != end; ++at)
    streamed += (*at)[1];
  EXPECT_EQ(streamed, "00111122");
}

// What the engine tells about a token of a prompt.
TokenEvent prompt_event(int32_t id, float logprob) {
  TokenEvent event;
  event.id = id;
  event.logprob = logprob;
  event.top = {{65, -0.25f}, {id, logprob}};
  return event;
}

TEST_F(OpenAiCompletions, EchoesThePromptWithItsLogprobs) {
  const auto reply = complete(R"("prompt":"Once upon a","echo":true,"logprobs":2,"max_tokens":1)");
  EXPECT_TRUE(asked().score_prompt);
  EXPECT_EQ(asked().top_logprobs, 2);
  const std::vector<int32_t> prompt = asked().prompt;
  ASSERT_EQ(prompt.size(), 3u);
  engine_.taken[0].listener->on_prompt_token(prompt_event(prompt[1], -1.5f));
  engine_.taken[0].listener->on_prompt_token(prompt_event(prompt[2], -2.5f));
  engine_.answer(0, {" time"}, FinishReason::max_tokens);
  const Json choice = reply->json().at("choices").at(0);
  EXPECT_EQ(choice.at("text"), "Once upon a time");
  EXPECT_EQ(dump_json(choice.at("logprobs").at("tokens")), R"(["Once", " upon", " a", " time"])");
  EXPECT_EQ(dump_json(choice.at("logprobs").at("token_logprobs")), "[null, -1.5, -2.5, -0.5]");
  EXPECT_EQ(dump_json(choice.at("logprobs").at("text_offset")), "[0, 4, 9, 11]");
  const Json top = choice.at("logprobs").at("top_logprobs");
  EXPECT_TRUE(top.at(0).is_null());
  EXPECT_EQ(top.at(1).at("b").to_number<double>(), -0.25);
  EXPECT_EQ(top.at(1).at(" upon").to_number<double>(), -1.5);
  EXPECT_EQ(top.get_array().size(), 4u);
}

TEST_F(OpenAiCompletions, ScoresAPromptOnceForAllItsAnswers) {
  const auto reply =
      complete(R"("prompt":[[5,6],[7]],"n":2,"echo":true,"logprobs":0,"max_tokens":0)");
  ASSERT_EQ(engine_.taken.size(), 2u);
  EXPECT_EQ(engine_.taken[0].request.max_tokens, 0);
  engine_.taken[0].listener->on_prompt_token(prompt_event(6, -1.5f));
  for (size_t i = 0; i < 4; ++i) engine_.answer(i, {}, FinishReason::max_tokens);
  EXPECT_TRUE(engine_.taken[1].request.score_prompt);
  EXPECT_FALSE(engine_.taken[2].request.score_prompt);
  const JsonObject body = reply->json();
  for (const int i : {0, 1, 2, 3}) {
    const Json choice = body.at("choices").at(size_t(i));
    EXPECT_EQ(dump_json(choice.at("logprobs").at("token_logprobs")),
              i < 2 ? "[null, -1.5]" : "[null]");
    EXPECT_EQ(choice.at("finish_reason"), "length");
    EXPECT_EQ(choice.at("text"), i < 2 ? "&'" : "(");
  }
}

TEST_F(OpenAiCompletions, StreamsAScoredPromptTokenByToken) {
  const std::vector<int32_t> ids = tokenizer().encode("aé");
  ASSERT_EQ(ids.size(), 3u) << "each byte of the accent is a token";
  const auto reply =
      complete(R"("prompt":"aé","stream":true,"echo":true,"logprobs":0,"max_tokens":1)");
  for (const size_t i : {1, 2})
    engine_.taken[0].listener->on_prompt_token(prompt_event(ids[i], -1.5f));
  engine_.answer(0, {" b"}, FinishReason::max_tokens);
  std::string text, logprobs, offsets;
  for (const JsonObject& event : reply->events()) {
    const Json choice = event.at("choices").at(0);
    text += std::string_view(choice.at("text").get_string());
    if (choice.at("logprobs").is_null()) continue;
    logprobs += dump_json(choice.at("logprobs").at("token_logprobs"));
    offsets += dump_json(choice.at("logprobs").at("text_offset"));
  }
  EXPECT_EQ(text, "aé b");
  EXPECT_EQ(logprobs, "[null][-1.5][-1.5][-0.5]");
  EXPECT_EQ(offsets, "[0][1][1][2]");
}

TEST_F(OpenAiCompletions, BehindAScoredPromptTheStopTokenIsCounted) {
  const std::string fields = R"("prompt":"Once","echo":true,"logprobs":0,"max_tokens":1)";
  const auto whole = complete(fields), stream = complete(fields + R"(,"stream":true)"),
             plain = complete(R"("prompt":"Once","logprobs":0)");
  engine_.ending.stop_token = prompt_event(66, -0.75f);
  for (const size_t i : {0, 1, 2}) engine_.answer(i, {});
  EXPECT_THAT(whole->body(), HasSubstr(R"("token_logprobs":[null,-0.75])"));
  EXPECT_EQ(whole->json().at("choices").at(0).at("text"), "Once");
  EXPECT_EQ(
      dump_json(stream->events().back().at("choices").at(0).at("logprobs").at("token_logprobs")),
      "[-0.75]");
  EXPECT_THAT(plain->body(), HasSubstr(R"("token_logprobs":[])"));
}

TEST_F(OpenAiCompletions, OfTokensThatLookTheSameTheBetterIsShown) {
  const std::vector<int32_t> ids = tokenizer().encode("é");
  ASSERT_EQ(ids.size(), 2u);
  const auto reply = complete(R"("prompt":"Once","logprobs":2)");
  TokenEvent event = prompt_event(ids[0], -0.5f);
  event.top = {{ids[0], -0.5f}, {ids[1], -3.0f}};
  engine_.taken[0].listener->on_token(event);
  engine_.end(0, 1, FinishReason::max_tokens);
  const Json top = reply->json().at("choices").at(0).at("logprobs").at("top_logprobs").at(0);
  EXPECT_EQ(top.get_object().size(), 1u);
  EXPECT_EQ(top.at("\uFFFD").to_number<double>(), -0.5);
}

TEST_F(OpenAiCompletions, AnEchoFillsTheContext) {
  engine_.context_length = 3;
  EXPECT_EQ(complete(R"("prompt":[5,6,7],"echo":true,"max_tokens":0)")->status(), 0);
  EXPECT_EQ(complete(R"("prompt":[5,6,7],"echo":true,"max_tokens":1)")->status(), 400);
}

TEST_F(OpenAiCompletions, RefusesMoreLogprobsThanItSendsInOnePiece) {
  engine_.context_length = 100'000;
  std::string prompt = "5";
  for (int i = 1; i < 40'000; ++i) prompt += ",5";
  const std::string fields =
      R"("prompt":[)" + prompt + R"(],"max_tokens":0,"echo":true,"logprobs":)";
  const auto refused = complete(fields + "20");
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), HasSubstr("ask for 'stream'"));
  EXPECT_TRUE(engine_.taken.empty()) << "it is known before anything is computed";
  complete(fields + "1");
  complete(fields + R"(20,"stream":true)");
  EXPECT_EQ(engine_.taken.size(), 2u);
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
      {R"("prompt":"a","echo":true,"logprobs":21)", "logprobs"},
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
